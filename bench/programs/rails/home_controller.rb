# frozen_string_literal: true

# The one page of the Rails workload.
class HomeController < ApplicationController
  layout false # the layout asks for compiled assets

  def show
    @words = %w[frozen thawed]
  end
end

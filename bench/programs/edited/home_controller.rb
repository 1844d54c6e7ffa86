# frozen_string_literal: true

# One page that shows all that edits change.
class HomeController < ApplicationController
  def show
    @shown = []
    settings = Rails.application.config.x
    @shown << Part.texts << (Object.const_defined?(:Extra) ? Extra::TEXT : nil)
    @shown << [settings.shown, settings.environment, settings.initialised, settings.more].map(&:inspect)
    @shown << Rails.application.routes.routes.size << I18n.t(".").size
  end
end

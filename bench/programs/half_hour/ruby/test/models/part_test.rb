# frozen_string_literal: true

require "test_helper"

class PartTest < ActiveSupport::TestCase
  test "texts" do
    assert_kind_of Array, Part.texts
  end
end

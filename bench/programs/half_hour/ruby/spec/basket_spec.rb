# frozen_string_literal: true

require_relative "../tools/basket"

RSpec.describe Basket do
  it "adds prices" do
    basket = described_class.new
    basket.add(3)
    basket.add(2)
    expect(basket.total).to eq(5)
  end
end

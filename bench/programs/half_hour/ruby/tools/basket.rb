# frozen_string_literal: true

# What is tested.
class Basket
  def initialize = @prices = []

  def add(price) = @prices << price

  def total = @prices.sum
end

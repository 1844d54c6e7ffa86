# frozen_string_literal: true

# The main part that all heaps share: nothing, or with the argument `gc` one full collection.
GC.start if ARGV.include?("gc")

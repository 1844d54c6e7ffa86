# frozen_string_literal: true

# Measures how long each `require` of a Ruby program takes, without anything of Snapboot: for bench/agreement.py.
#
# RUBYOPT=-r names this file, REQUIRED_TIMES the file that gets a line for each feature that was loaded: its milliseconds
# with all that it loads itself, but without garbage collections, and its name as it was asked for. RubyGems asks Ruby for
# what it has found, so that a feature may be there twice, one inside the other.
times = []

# Milliseconds of the program itself. Before Ruby 3.1 nothing tells how long collections take.
clock =
  lambda do
    collected = GC.respond_to?(:total_time) ? GC.total_time / 1e6 : 0
    Process.clock_gettime(Process::CLOCK_MONOTONIC, :float_millisecond) - collected
  end

measured =
  lambda do |name, &load|
    begun = clock.call
    loaded = load.call
  ensure
    # A program that calls `exit` has been loaded, too.
    times << [clock.call - begun, name] if loaded != false
  end

# Bundler puts a method of its own in the place of Ruby's. What does so later calls what was there before.
require "bundler/setup" if ENV["REQUIRED_BUNDLED"]

Kernel.module_eval do
  plain = instance_method(:require)
  define_method(:require) { |name| measured.call(name.to_s) { plain.bind_call(self, name) } }
  plain_load = instance_method(:load)
  define_method(:load) { |name, *wrap| measured.call(name.to_s) { plain_load.bind_call(self, name, *wrap) } }
  define_method(:require_relative) do |name|
    path = File.expand_path(name, File.dirname(caller_locations(1, 1).first.absolute_path))
    measured.call(path) { plain.bind_call(self, path) }
  end
  private :require, :load, :require_relative
end

at_exit { File.write(ENV.fetch("REQUIRED_TIMES"), times.map { |line| "#{line.join(" ")}\n" }.join) }

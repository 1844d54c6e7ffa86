# frozen_string_literal: true

# Prints how many milliseconds it takes to load one thing once, in a process that has loaded nothing like it before.
#
#   ruby load_once.rb WHAT PATH     WHAT: binary (an ISeq binary from a file), source (a Ruby file) or yaml

require "yaml"
what, path = ARGV
YAML.safe_load("{}") # what the first use loads is not what is measured
began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
case what
when "binary" then RubyVM::InstructionSequence.load_from_binary(File.binread(path)).eval
when "source" then load path
when "yaml" then YAML.load_file(path)
else abort "WHAT must be binary, source or yaml, not #{what}"
end
puts (Process.clock_gettime(Process::CLOCK_MONOTONIC) - began) * 1000

# frozen_string_literal: true

# Prepares the heap of a process that is about to be frozen. A boot leaves free slots all over it. Each forked child of a
# thawed server would place new objects there, each in a page of its own that has to be copied.
module Heap
  # An object is old, and skipped by minor garbage collections, after surviving this many.
  COLLECTIONS = 4
  # Instances of these may be moved. The rest stays where it is: an extension may have written down where a class or its own
  # object lies, without telling the collector.
  MOVABLE = [String, Array, Hash, Regexp, Symbol, Range].to_h { |kind| [kind, true] }.compare_by_identity.freeze
  CLASS = Kernel.instance_method(:class)
  private_constant :COLLECTIONS, :MOVABLE, :CLASS

  class << self
    # Collects garbage. +forks+: whether the program is a server, whose forked children share the heap; then objects are
    # moved together, where Ruby can do that.
    def settle(forks:)
      COLLECTIONS.times { GC.start }
      pack if forks && GC.respond_to?(:compact)
    end

    private

    # Compaction moves no key of a hash that compares keys by identity.
    def pack
      pinned = {}.compare_by_identity
      ObjectSpace.each_object { |thing| pinned[thing] = true unless MOVABLE.key?(CLASS.bind_call(thing)) }
      GC.compact
      pinned.clear
      GC.start
    rescue NotImplementedError
      nil # this build cannot
    end
  end
end

# frozen_string_literal: true

# What lies below the keys of Hashes and the items of Sets that are no Strings themselves, for StartComparison. A text there
# is not made anew: the Hash would look for its key in the wrong place, since it goes by what the whole key was.
class BelowKeys
  # So far below objects that have their own idea of what they are.
  DEEPEST = 3
  # They are what they hold.
  CONTAINERS = [Array, Hash, Struct, Range, *(Data if defined?(Data.define))].freeze
  # They are equal to nothing else, whatever they hold.
  ALONE = [Module, Proc, Method, UnboundMethod, Thread, IO].freeze
  BY_IDENTITY = Hash.instance_method(:compare_by_identity?)

  def initialize
    @found = {}.compare_by_identity
  end

  def add(key, table)
    look(key, 0) unless BY_IDENTITY.bind_call(table) || alone?(ObjectPaths::CLASS.bind_call(key))
  end

  def key?(object)
    @found.key?(object)
  end

  private

  # By the number of steps, since what was met far below something may be a key itself.
  def look(object, depth)
    return if depth > DEEPEST || @found.fetch(object, DEEPEST + 1) <= depth

    type = ObjectPaths::CLASS.bind_call(object)
    return if ObjectPaths::LEAVES.key?(type) || ALONE.any? { |base| ObjectPaths::BELOW.bind_call(type, base) }

    @found[object] = depth
    depth += 1 unless CONTAINERS.any? { |base| ObjectPaths::BELOW.bind_call(type, base) }
    ObjectSpace.reachable_objects_from(object)&.each { |it| look(it, depth) }
  end

  # Whether objects of that class have Ruby's own idea of what they are.
  def alone?(type)
    ObjectPaths::METHOD.bind_call(type, :hash).owner.equal?(Kernel)
  rescue NameError
    false
  end
end

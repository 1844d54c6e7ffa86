# frozen_string_literal: true

# Finds what lies below keys of Hashes and items of Sets that are not Strings themselves, for StartComparison. A text there
# cannot be made anew: the Hash would look for its key in the wrong place, since it uses the hash of the original key.
class BelowKeys
  # The depth of the search below objects that define their own equality.
  DEEPEST = 3
  # The equality of these follows from their contents.
  CONTAINERS = [Array, Hash, Struct, Range, *(Data if defined?(Data.define))].freeze
  # These equal nothing else, whatever they hold.
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

  # Remembers the depth as well, since an object met deep below another may be a key itself.
  def look(object, depth)
    return if depth > DEEPEST || @found.fetch(object, DEEPEST + 1) <= depth

    type = ObjectPaths::CLASS.bind_call(object)
    return if ObjectPaths::LEAVES.key?(type) || ALONE.any? { |base| ObjectPaths::BELOW.bind_call(type, base) }

    @found[object] = depth
    depth += 1 unless CONTAINERS.any? { |base| ObjectPaths::BELOW.bind_call(type, base) }
    ObjectSpace.reachable_objects_from(object)&.each { |it| look(it, depth) }
  end

  # Whether objects of that class have Ruby's own identity-based equality.
  def alone?(type)
    ObjectPaths::METHOD.bind_call(type, :hash).owner.equal?(Kernel)
  rescue NameError
    false
  end
end

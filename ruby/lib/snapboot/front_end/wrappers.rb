# frozen_string_literal: true

# Routes methods through a block while the program boots.
class Wrappers
  FILE = __FILE__

  def initialize
    @all = []
  end

  # Routes calls of the method +name+ of +owner+ through the block, which gets the receiver, the method bound to it, the
  # arguments and the block of the call. Wraps again only if other code has replaced the method.
  def wrap(owner, name, &around)
    return unless owner.method_defined?(name) || owner.private_method_defined?(name)

    original = owner.instance_method(name)
    return if @all.any? { |*, wrapped| wrapped == original }

    wrapper = proc { |*arguments, &block| around.call(self, original.bind(self), arguments, block) }
    replace(owner, name, wrapper, original)
    @all << [owner, name, original, owner.instance_method(name)]
  end

  # Restores the methods, except those that other code has replaced since.
  def take_off
    @all.reverse_each do |owner, name, original, wrapped|
      replace(owner, name, original, original) if owner.instance_method(name) == wrapped
    end
    @all.clear
  end

  private

  def replace(owner, name, body, model)
    hidden = %i[private protected].find { |kind| owner.__send__("#{kind}_method_defined?", name) }
    owner.alias_method(name, name) # avoids Ruby's warning about a discarded method
    owner.define_method(name, body)
    owner.__send__(:ruby2_keywords, name) if body != model
    owner.__send__(hidden, name) if hidden
  end
end

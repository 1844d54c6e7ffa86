# frozen_string_literal: true

# Records which seeds the program gives while it boots. A seed that Ruby drew has 128 bits, and a given seed rarely has;
# where one has, it is known from here.
class Seeding
  # Seeds that Ruby draws are longer than this (bits), except once in 2**64 times.
  LONGEST_GIVEN = 64

  # Create this first of all.
  def initialize
    @given = {}
    @drawn = {}
    @originals = []
    watch(Random.singleton_class, :new_seed) { |_, seed| @drawn[seed] = true }
    note_given = ->(arguments, _) { arguments.each { |seed| @given[seed.to_i] = true } }
    watch(Random.instance_method(:initialize).owner, :initialize, &note_given)
    [Random, Kernel].each { |owner| watch(owner.singleton_class, :srand, &note_given) }
    watch(Kernel, :srand, &note_given)
  end

  # Restores all methods. Call before the image is written.
  def finish
    verbose = $VERBOSE
    $VERBOSE = nil
    @originals.each do |owner, name, original, visibility|
      owner.define_method(name, original)
      owner.__send__(visibility, name)
    end
    @originals.clear
  ensure
    $VERBOSE = verbose
  end

  # Whether the program chose this seed, so that the generator continues after a thaw.
  def given?(seed)
    seed.abs.bit_length <= LONGEST_GIVEN || (@given.key?(seed) && !@drawn.key?(seed))
  end

  private

  # Calls the block with the arguments and the result of each call of the method.
  def watch(owner, name, &note)
    original = owner.instance_method(name)
    visibility = owner.private_method_defined?(name, false) ? :private : :public
    @originals << [owner, name, original, visibility]
    verbose = $VERBOSE
    $VERBOSE = nil
    owner.define_method(name) do |*arguments|
      result = original.bind_call(self, *arguments)
      note.call(arguments, result)
      result
    end
    owner.__send__(visibility, name)
  ensure
    $VERBOSE = verbose
  end
end

# frozen_string_literal: true

# Makes two thaws differ, whatever their pids. Kernel#rand reseeds itself in every fork child, and SecureRandom asks the
# kernel; what remains are generators that seeded themselves while freezing, and OpenSSL's.
class Randomness
  # A seed that Ruby chose has 128 bits; one given by the program is hardly ever that long.
  LONGEST_GIVEN_SEED = 64

  # Finds the generators while freezing.
  def initialize
    @generators = ObjectSpace.each_object(Random).select { |random| random.seed.bit_length > LONGEST_GIVEN_SEED }
    @openssl = OpenSSL::Random.method(:random_add) if Object.const_defined?(:OpenSSL) && OpenSSL.const_defined?(:Random)
  end

  # Reseeds them after a thaw. Generators that the program seeded go on as seeded.
  def refresh
    @generators.each { |random| random.__send__(:initialize) }
    @openssl&.call(Random.urandom(32), 32.0)
  end
end

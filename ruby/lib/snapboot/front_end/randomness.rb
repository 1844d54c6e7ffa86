# frozen_string_literal: true

# Makes two thaws differ, whatever their pids. SecureRandom reads from the kernel, and Ruby itself seeds the generator of
# Kernel#rand anew in every forked child; what remains are generators that drew their seed while freezing, and OpenSSL's. A
# generator that the program has seeded continues.
class Randomness
  # Words of a generator's state.
  WORDS = 624
  # How far the generator of Kernel#rand is advanced from its seed (states of 624 words).
  MAX_STATES = 10_000

  # Messages for the user.
  attr_reader :warnings

  # Finds the generators while freezing. +seeding+ has watched the boot.
  def initialize(seeding)
    @warnings = []
    @generators = ObjectSpace.each_object(Random).reject { |random| seeding.given?(random.seed) }
                             .select { |random| renewable?(random) }
    @openssl = OpenSSL::Random.method(:random_add) if Object.const_defined?(:OpenSSL) && OpenSSL.const_defined?(:Random)
    forget_ticket_keys
    follow_main_generator if seeding.given?(Random.seed)
  end

  # Returns the position of Kernel#rand's generator if the program has seeded it: a fork loses it.
  def position
    [@seed, @words]
  end

  # Reseeds them after a thaw.
  def renew
    @generators.each { |random| random.__send__(:initialize) }
    @openssl&.call(Random.urandom(32), 32.0)
    go_on if @words
  end

  private

  # Makes servers keep sessions themselves, since their clients can resume them in this process alone anyway: a context draws
  # the keys of session tickets when it is created, and no method of Ruby's draws them again.
  def forget_ticket_keys
    return unless Object.const_defined?(:OpenSSL) && OpenSSL.const_defined?(:SSL) && !OpenSSL.autoload?(:SSL)

    ObjectSpace.each_object(OpenSSL::SSL::SSLContext) do |context|
      next if context.options & OpenSSL::SSL::OP_NO_TICKET != 0

      if !context.frozen?
        context.options |= OpenSSL::SSL::OP_NO_TICKET
      elsif context.cert
        @warnings << "#{place_of(context)} is a server's TLS context that has been set up, and its keys of session " \
                     "tickets cannot be renewed: they would be those of all thaws; give it OpenSSL::SSL::OP_NO_TICKET " \
                     "before that, or make it with Snapboot.defer"
      end
    end
  end

  def renewable?(random)
    random.__send__(:initialize)
    true
  rescue StandardError => e
    @warnings << "#{place_of(random)} holds random state that cannot be renewed (#{e.class}): all thaws of the image may " \
                 "repeat its numbers; make it with Snapboot.defer"
    false
  end

  # Returns the constant that holds it, or its description.
  def place_of(random)
    ObjectSpace.each_object(Module) do |holder|
      name = holder.constants(false).find { |it| !holder.autoload?(it) && holder.const_get(it, false).equal?(random) }
      return holder.equal?(Object) ? name.to_s : "#{holder}::#{name}" if name
    rescue StandardError
      next # it cannot be read
    end
    "an object of #{random.class}"
  end

  def follow_main_generator
    @seed = Random.seed
    @words = words_taken
    return if @words

    @warnings << "srand(#{@seed}) was followed by more than #{WORDS * MAX_STATES} numbers while booting: Kernel#rand " \
                 "does not go on from there, but draws a new seed; call srand in an after_thaw hook"
  end

  # Returns how many words Kernel#rand has taken since it was seeded: the fork loses the state, and Ruby cannot restore one.
  def words_taken
    state = Random.__send__(:state)
    twin = Random.new(@seed)
    return 0 if twin.__send__(:state) == state

    twin.bytes(4) # generates the first state
    # The position counts from WORDS, after the first word, down to 1.
    taken = WORDS + 1 - Random.__send__(:left)
    found = (0...MAX_STATES).find { twin.__send__(:state) == state || (twin.bytes(4 * WORDS) && false) }
    found && ((WORDS * found) + taken)
  end

  def go_on
    Random.srand(@seed)
    Random.bytes(4 * @words) if @words.positive?
  end
end

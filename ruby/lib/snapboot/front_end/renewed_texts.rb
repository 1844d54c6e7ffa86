# frozen_string_literal: true

# Strings that a thaw makes anew in place: those that hold a secret (secret_values.rb), and those that hold a fact about the
# start (evidence.rb).
class RenewedTexts
  TO_S = Kernel.instance_method(:to_s)
  # The original methods: subclasses may override them.
  REPLACE, ENCODING, FREEZE = %i[replace encoding freeze].map { |name| String.instance_method(name) }
  FROZEN = Kernel.instance_method(:frozen?)
  EACH_KEY, REHASH, BY_IDENTITY = %i[each_key rehash compare_by_identity?].map { |name| Hash.instance_method(name) }
  private_constant :TO_S, :REPLACE, :ENCODING, :FREEZE, :FROZEN, :EACH_KEY, :REHASH, :BY_IDENTITY

  # Returns the address of the object, in hexadecimal digits.
  def self.address(object)
    TO_S.bind_call(object)[/0x(\h+)>\z/, 1] # the last one: a nameless class shows an address, too
  end

  # Returns the pieces with +values+ in place of those that are their keys. The topmost directory adds nothing before a
  # slash.
  def self.fill(pieces, values)
    pieces.each_with_index.map do |piece, at|
      value = values.fetch(piece, piece)
      values.key?(piece) && value == "/" && pieces[at + 1].is_a?(String) && pieces[at + 1].start_with?("/") ? "" : value
    end
  end

  def initialize
    @texts = {}.compare_by_identity
    @hashes = []
  end

  # Adds a string that is made anew from +pieces+: Strings, and anything else for what #exchange inserts. False if the string
  # cannot be changed, since it exists only once, such as a key of a Hash.
  def add(text, pieces)
    was_frozen = FROZEN.bind_call(text)
    unfreeze(text) if was_frozen
    return false if FROZEN.bind_call(text)

    # It is frozen again once it has its value.
    @texts[text] = [pieces, was_frozen]
    true
  end

  def empty?
    @texts.empty?
  end

  def key?(text)
    @texts.key?(text)
  end

  # Whether that string is frozen once it has its value.
  def frozen?(text)
    @texts[text]&.last
  end

  # Returns all pieces that are not Strings.
  def open_pieces
    @texts.values.flat_map(&:first).grep_v(String).uniq
  end

  # Finds the Hashes with such keys: they must be rehashed. Call when all strings are added. Returns the keys of those that
  # are frozen.
  def find_hashes
    held = []
    ObjectSpace.each_object(Hash) do |hash|
      keys = []
      EACH_KEY.bind_call(hash) { |key| keys << key if @texts.key?(key) }
      next if keys.empty? || hash.equal?(@texts) || BY_IDENTITY.bind_call(hash)

      FROZEN.bind_call(hash) ? held.concat(keys) : @hashes << hash
    end
    held
  end

  # Replaces the pieces. +values+: Strings by piece.
  def exchange(values)
    @texts.each do |text, (pieces, was_frozen)|
      next unless pieces.any? { |piece| values.key?(piece) }

      pieces.replace(RenewedTexts.fill(pieces, values))
      next unless pieces.all?(String)

      REPLACE.bind_call(text, pieces.join.force_encoding(ENCODING.bind_call(text)))
      FREEZE.bind_call(text) if was_frozen
    end
  end

  # Leaves all strings in the image as they are.
  def keep
    @texts.each { |text, (_, was_frozen)| FREEZE.bind_call(text) if was_frozen }
    initialize
  end

  # Call when all strings have their final values.
  def finish
    @hashes.each { |hash| REHASH.bind_call(hash) }
    initialize
  end

  private

  # The freezer does what Ruby cannot: see ruby_text.rs there, whose layout ObjectHeader has checked.
  def unfreeze(text)
    Channel.call(Channel::UNFREEZE, RenewedTexts.address(text)) if ObjectHeader.layout_known?
  end
end

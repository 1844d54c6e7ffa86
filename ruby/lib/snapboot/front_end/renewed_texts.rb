# frozen_string_literal: true

# Strings that a thaw makes anew in their places: those that hold a secret (secret_values.rb), and those that hold a fact
# about the start (evidence.rb).
class RenewedTexts
  TO_S = Kernel.instance_method(:to_s)
  # A library's kind of string or hash may have other ideas.
  REPLACE, ENCODING, FREEZE = %i[replace encoding freeze].map { |name| String.instance_method(name) }
  FROZEN = Kernel.instance_method(:frozen?)
  EACH_KEY, REHASH, BY_IDENTITY = %i[each_key rehash compare_by_identity?].map { |name| Hash.instance_method(name) }
  private_constant :TO_S, :REPLACE, :ENCODING, :FREEZE, :FROZEN, :EACH_KEY, :REHASH, :BY_IDENTITY

  # Where the object lies, in hexadecimal digits.
  def self.address(object)
    TO_S.bind_call(object)[/0x(\h+)>\z/, 1] # not that of a class without a name
  end

  def initialize
    @texts = {}.compare_by_identity
    @hashes = []
  end

  # Takes a string for one that is made anew of +pieces+: Strings, and anything else for what #exchange puts in its place.
  # False where it cannot be changed, since it exists only once, such as a key of a Hash.
  def add(text, pieces)
    was_frozen = FROZEN.bind_call(text)
    unfreeze(text) if was_frozen
    return false if FROZEN.bind_call(text)

    # It is frozen again when it has its value.
    @texts[text] = [pieces, was_frozen]
    true
  end

  def empty?
    @texts.empty?
  end

  def key?(text)
    @texts.key?(text)
  end

  # Whether that string is frozen when it has its value.
  def frozen?(text)
    @texts[text]&.last
  end

  # All pieces that are no Strings.
  def open_pieces
    @texts.values.flat_map(&:first).grep_v(String).uniq
  end

  # Hashes find their keys by what these were, and have to be told. To be called when all strings are added. Returns the keys
  # of those that are frozen.
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

  # Puts each of these Strings in the place of the pieces that it is for. +values+: Strings by piece.
  def exchange(values)
    @texts.each do |text, (pieces, was_frozen)|
      next unless pieces.any? { |piece| values.key?(piece) }

      pieces.map! { |piece| values.fetch(piece, piece) }
      next unless pieces.all?(String)

      REPLACE.bind_call(text, pieces.join.force_encoding(ENCODING.bind_call(text)))
      FREEZE.bind_call(text) if was_frozen
    end
  end

  # Leaves all strings as they are in the image.
  def keep
    @texts.each { |text, (_, was_frozen)| FREEZE.bind_call(text) if was_frozen }
    initialize
  end

  # To be called when all strings are as they shall be.
  def finish
    @hashes.each { |hash| REHASH.bind_call(hash) }
    initialize
  end

  private

  # The freezer does what Ruby cannot: see ruby_text.rs there.
  def unfreeze(text)
    Channel.call(Channel::UNFREEZE, RenewedTexts.address(text))
  end
end

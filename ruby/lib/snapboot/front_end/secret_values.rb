# frozen_string_literal: true

# Secret variables: the boot has made-up values, and a thaw puts the real ones into the strings that hold them.
#
# The search covers the made-up value of each variable, user and password if it is an address (crates/inputs secret.rs splits
# it in the same way), and values that a recipe can compute from secrets again. That is only right for a program that does
# nothing else with its secrets. So `snapboot freeze` boots the program again with other values, and compares the contents of
# the processes: see comparison.rb.
class SecretValues
  SCHEME = %r{\A[A-Za-z0-9+.-]+://}
  IN_QUERY = %w[pass pwd token secret key=].freeze
  private_constant :SCHEME, :IN_QUERY

  # +names+: of all secrets that are set. +compares+: whether nothing is frozen, and the contents of the process are compared
  # with a boot with other values.
  def initialize(directory, names, compares)
    @directory = directory
    @names = names
    @compares = compares
    @values = {}
    @patterns = {}
    @texts = RenewedTexts.new
    @problems = []
  end

  # Call right before the freeze. +shown+: the values that the program was booted with. +computed+: pairs of a string that
  # was computed from a secret, and the code that computes it again. Adds its findings to +report+.
  def settle(shown, computed, report)
    @values = @names.filter_map { |name| [name, shown[name].b] if shown[name] }.to_h
    return if @values.empty?

    make_patterns(computed)
    GC.start
    find
    @problems.uniq.each { |problem| report.add("secret_kept", problem) }
    compare(report)
    GC.start
  end

  # Gives the strings the values of this process. Yields if one has another form than the made-up one.
  def renew
    return if @texts.empty?

    parts = @values.keys.to_h { |name| [name, parts_of(ENV.fetch(name, "").b)] }
    # Variables first: the others are computed from these, each from earlier ones.
    used = @texts.open_pieces
    values = @parts.values.intersection(used).to_h { |part| [part, parts[part[1]][part[2]] || yield] }
    @texts.exchange(values)
    @computed.each_value { |part| @texts.exchange(part => part.last.call.b) if used.include?(part) }
    @texts.finish
  rescue StandardError
    yield
  end

  # Whether a thaw makes the string anew.
  def keep?(text)
    @texts.key?(text)
  end

  # Whether it was frozen before a thaw could change it, and is frozen again after that.
  def frozen?(text)
    @texts.frozen?(text)
  end

  private

  def make_patterns(computed)
    @values.each do |name, value|
      parts_of(value).each { |way, part| @patterns[part] ||= [:part, name, way] }
    end
    computed.each { |text, again| @patterns[text.b] ||= [:computed, again] }
    @parts, @computed = @patterns.partition { |_, (kind, *)| kind == :part }.map(&:to_h)
    @patterns = @patterns.sort_by { |text, _| -text.bytesize }.to_h
  end

  # Returns the parts of a value to search for, by the way in which each is derived.
  def parts_of(value)
    found = { "whole" => value }
    scheme = value[SCHEME]
    return found if scheme.nil?

    rest = value[scheme.size..]
    authority = rest[%r{\A[^/?#]*}n]
    login, at, host = authority.rpartition("@")
    after = host + rest[authority.size..]
    return found if at.empty? || login.include?("@") || after.include?("://") ||
                    IN_QUERY.any? { |word| after.downcase.include?(word) }

    user, colon, password = login.partition(":")
    add_part(found, "user", user)
    add_part(found, "password", password)
    found["login"] = login unless user.empty? || colon.empty? || password.empty?
    found
  end

  def add_part(found, way, part)
    return if part.empty?

    found[way] = part
    found["decoded #{way}"] = part.gsub(/%(\h\h)/n) { |escape| [escape[1..]].pack("H2") } if part.include?("%")
  end

  def find
    own = {}.compare_by_identity
    [*@patterns.keys, *@values.values].each { |text| own[text] = true }
    marks = @patterns.keys.map { |text| text.dup.force_encoding(text.ascii_only? ? "US-ASCII" : "BINARY") }
    marks.each { |text| own[text] = true }
    @own = own.keys
    found = []
    # A list of all would make the heap grow, and with it the image.
    ObjectSpace.each_object(String) { |text| found << text if marks.any? { |mark| part?(text, mark) } }
    found.each { |text| keep(text) unless own.key?(text) }
    @texts.find_hashes.each { |key| @problems << "a Hash that is frozen has as a key #{value_in(key)}" }
    find_names(marks)
  end

  # Adds a string to those that are exchanged.
  def keep(text)
    return if @texts.add(text, split(text.b))

    @problems << "a string that exists only once, such as a key of a Hash, keeps #{value_in(text)}"
  end

  # Finds symbols and patterns, which cannot be changed.
  def find_names(marks)
    ascii = marks.select(&:ascii_only?)
    symbol = Symbol.all_symbols.find { |candidate| ascii.any? { |mark| part?(candidate.name, mark) } }
    @problems << "a Symbol is made of #{value_in(symbol.name)}" if symbol
    @own += patterns = ascii.map { |mark| Regexp.escape(mark) } + ascii
    sources = ObjectSpace.each_object(Regexp).lazy.map(&:source)
    source = sources.find { |candidate| patterns.any? { |pattern| part?(candidate, pattern) } }
    @problems << "a Regexp is made of #{value_in(source)}" if source
  end

  # Describes in words which variables' values a text holds, as they are or escaped for a pattern.
  def value_in(text)
    held = @values.filter_map do |name, value|
      parts = parts_of(value).values
      name if (parts + parts.map { |part| Regexp.escape(part).b }).any? { |part| text.b.include?(part) }
    end
    held.empty? ? "what is computed of a secret" : "the value of #{held.join(", ")}"
  end

  # Makes no copy of the text: Ruby would make the two share their bytes from then on.
  def part?(text, mark)
    Encoding.compatible?(text, mark) && text.include?(mark)
  end

  # Splits a text: texts that stay, and patterns.
  def split(text)
    pieces = @patterns.keys.reduce([text]) do |all, pattern|
      all.flat_map { |piece| @patterns.key?(piece) ? [piece] : between(piece, pattern) }
    end
    pieces.map { |piece| @patterns.fetch(piece, piece) }
  end

  def between(piece, pattern)
    pieces = piece.split(pattern, -1)
    pieces.flat_map { |part| [part, pattern] }[0..-2].reject(&:empty?)
  end

  # Writes down the contents of this process, without the secrets, in a child that may load files for that.
  def compare(report)
    comparison = Comparison.new(@directory, @patterns, @own)
    if @compares
      comparison.derived.each { |what| report.add("derived", what) }
      return comparison.write
    end
    InChild.run { comparison.write }
  end
end

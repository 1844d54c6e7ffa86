# frozen_string_literal: true

# Compares boots whose facts have a form of everyday starts: the current directory is the topmost one, HOME itself, or below
# HOME; HOME is the topmost directory. Use this only in a process that is not frozen.
#
# The other start (start_comparison.rb) has shown of which facts each string is made. Here one string may be made of several
# facts, or be everywhere, such as `/`. So nothing is guessed: at each path there must be what a thaw would make of these
# values, and all else must be as in the first boot. The boot like the first one, which becomes the image, knows the noise,
# and so decides which forms were harmless. `form_N` in the control directory has the features of the values
# (StartForm#features), an empty line, and then lines with path and digest in the terms of the first boot.
class FormComparison
  FILES = "form_*"
  # What stands before the bytes of a string in its content, see ObjectPaths.
  PREFIXES = %w[UTF-8 US-ASCII ASCII-8BIT].product(["", ", frozen"]).map { |parts| "String #{parts.join}:".b }.freeze
  private_constant :FILES, :PREFIXES

  # Returns the features of the values in those forms in which a boot held the same. +held+: digests by path of a boot like
  # the first one. +noise+: the paths that differ between like boots.
  def self.tried(directory, held, noise)
    Dir.glob(FILES, base: directory).flat_map do |name|
      features, rows = File.binread("#{directory}/#{name}").split("\n\n", 2)
      other = rows.to_s.split("\n").to_h { |line| line.split("\0", 2) }
      same = (held.keys | other.keys).all? do |path|
        other[path] == held[path] || noise.key?(path) || (!other.key?(path) && path.start_with?(ObjectPaths::ROOT))
      end
      same ? features.split("\n") : []
    end
  end

  # +evidence+: the Evidence. +paths+: the ObjectPaths.
  def initialize(directory, evidence, paths)
    @directory = directory
    @evidence = evidence
    @paths = paths
    @here = evidence.facts.keys.to_h { |name| [name, evidence.here[name].to_s] }
    @first = StartComparison.rows(directory, "held").transform_values(&:first)
    @known = @first.invert
    @templates = StartComparison.rows(directory, "held_otherwise").filter_map do |path, (_, template)|
      [path, evidence.pieces_of(template)] unless template.to_s.empty?
    end.to_h
    @alike = {}
    @templates.each_value do |pieces|
      text, there = [@here, evidence.facts].map { |values| fill(pieces, values) }
      @alike[text] = @alike.fetch(text, there) == there ? there : nil
    end
  end

  # Writes what this boot holds.
  def run
    lines = []
    @paths.each(method(:translated), method(:value_in?)) do |path, content, object|
      digest = ObjectPaths.digest(content)
      digest = digest_there(path, content, object) || digest unless @first[path] == digest
      lines << "#{path}\0#{digest}\n"
    end
    features = @evidence.features.map { |feature| "#{feature}\n" }
    File.binwrite("#{@directory}/form_#{@evidence.form_number}", [*features, "\n", *lines].map(&:b).join)
  end

  private

  # Returns the digest of the first boot's content at this path, if this string is what a thaw would make of it.
  def digest_there(path, content, object)
    pieces = @templates[path]
    return unless pieces && String === object # rubocop:disable Style/CaseEquality

    bytes = ObjectPaths::BYTES.bind_call(object)
    return unless fill(pieces, @here) == bytes

    there = content.delete_suffix(translated(bytes) || bytes) << fill(pieces, @evidence.facts)
    ObjectPaths.digest(there)
  end

  # Returns the bytes of a string in the terms of the first boot, wherever it is; nil if they are the same, or not known.
  def translated(bytes)
    there = @alike[bytes]
    there unless there.nil? || PREFIXES.any? { |prefix| @known.key?(ObjectPaths.digest(prefix + bytes)) }
  end

  def value_in?(bytes)
    @here.each_value.any? { |value| value.bytesize > 1 && bytes.include?(value) }
  end

  def fill(pieces, values)
    RenewedTexts.fill(pieces, values).join.b
  end
end

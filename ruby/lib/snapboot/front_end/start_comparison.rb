# frozen_string_literal: true

# Compares what a boot holds with another boot: see evidence.rb. Use this only in a process that is not frozen.
#
# The values of the other boot are unlike all other texts. If a string there holds one and the first boot has its own value
# in the same place, the program only keeps the fact. Any other difference is reported. What differs between two like boots
# is noise. If noise holds a value of the other boot, the fact binds, since nobody knows what the rest follows from. The
# files of the control directory: `held` of the first boot and `held_otherwise` of the other one have lines with path and
# digest of a value and the template of a string that is renewed; `noise` has paths that differ in two like boots; `found` is
# what a child reports to its parent. `form_N` is of the boots of form_comparison.rb.
class StartComparison
  # A text that Ruby itself refers to, which may be gone in the next boot.
  TABLE_ENTRY = /\A\(Ruby\)<[^\n]*> \d+\z/n
  private_constant :TABLE_ENTRY

  # Returns digest and template by path, as a boot has left them in the file +name+: `held` or `held_otherwise`.
  def self.rows(directory, name)
    File.binread("#{directory}/#{name}").split("\n").to_h do |line|
      path, value, template = line.split("\0", -1)
      [path, [value, template]]
    end
  end

  # +evidence+: the Evidence. +paths+: the ObjectPaths.
  def initialize(directory, evidence, paths)
    @names = evidence.facts.keys
    @directory = directory
    @role = evidence.role
    @paths = paths
    others = evidence.facts.keys.each_with_index.map { |name, number| [evidence.here[name], number, evidence.facts[name]] }
    others.reject! { |here, _, there| here.nil? || here.empty? || here == there }
    # The longest first.
    @patterns = @role == "other" ? others.sort_by { |here, *| -here.bytesize } : []
    @values = evidence.here.values.compact.reject(&:empty?)
    @there = others.to_h { |_, number, there| [number, there] }
  end

  # Runs the comparison for which this boot was made.
  def run
    __send__(@role)
  end

  private

  def first
    lines = []
    each { |path, value| lines << "#{path}\0#{value}\0\n" }
    write("held", lines)
  end

  # Writes what is held, in the terms of the first boot, and what differs.
  def other
    first = read("held")
    noise = noise()
    lines = []
    different = []
    each do |path, value, object|
      lines << "#{path}\0#{value}\0#{template(object)}\n"
      different << path unless first.delete(path)&.first == value || noise.key?(path)
    end
    write("held_otherwise", lines)
    different += first.keys.reject { |path| noise.key?(path) || path.start_with?(ObjectPaths::ROOT) }
    write("found", different.map { |path| "differs=#{path}\0" })
  end

  # Finds the strings that a thaw makes anew, and differences that are no noise.
  def again
    first = read("held")
    other = read("held_otherwise")
    noise = {}
    differs = []
    templates = {}.compare_by_identity
    hidden = []
    held = {}
    each do |path, value, object|
      held[path] = value
      there, template = other.delete(path)
      if first.delete(path)&.first != value
        noise[path] = true
        hidden << [template, path] unless path.match?(TABLE_ENTRY)
      elsif there.nil? && path.start_with?(ObjectPaths::ROOT) then next # it holds the same text by coincidence
      elsif there != value then differs << path
      elsif (templates[object] ||= [template, path]).first != template # one object here, two there
        hidden.push([template, path], templates[object])
      end
    end
    first.each_key { |path| noise[path] = true }
    hidden += other.filter_map { |path, (_, template)| [template, path] if noise.key?(path) && !path.match?(TABLE_ENTRY) }
    differs += other.keys
    write("noise", noise.keys.map { |path| "#{path}\n" })
    tried = FormComparison.tried(@directory, held, noise).map { |feature| "tried=#{feature}\0" }
    renewed = templates.reject { |_, (template, _)| template.empty? }
    keys, renewed = renewed.partition { |text, _| @paths.below_keys.key?(text) }
    renewed = renewed.map { |text, (template, path)| "renew=#{RenewedTexts.address(text)} #{template} #{path}\0" }
    differs = differs.reject { |path| noise.key?(path) }.map { |path| "differs=#{path}\0" }
    write("found", (differs + bound(hidden + keys.map(&:last)) + renewed + tried).map(&:b))
  end

  # Reports that facts stand where no other value can be put. +templates+: each with its path.
  def bound(templates)
    found = templates.flat_map do |template, path|
      template.to_s.split(",").grep(/\A\d/).map { |number| [@names[number.to_i], path] }
    end
    found.uniq(&:first).map { |name, path| "held=#{Channel.record(name, path)}\0" }
  end

  # Yields path, digest and object of everything that is held.
  def each
    @paths.each(method(:translated), method(:value_in?)) do |path, content, object|
      yield path, ObjectPaths.digest(content), object
    end
  end

  # Returns the bytes of a string in the terms of the first boot; nil if they are the same.
  def translated(bytes)
    split(bytes)&.map { |piece| piece.is_a?(Integer) ? @there[piece] : piece }&.join
  end

  def value_in?(bytes)
    @values.any? { |value| bytes.include?(value) }
  end

  # Returns, as text, how a string is composed if it differs.
  def template(object)
    pieces = split(ObjectPaths::BYTES.bind_call(object)) if String === object # rubocop:disable Style/CaseEquality
    pieces&.map { |piece| piece.is_a?(Integer) ? piece : "x#{piece.unpack1("H*")}" }&.join(",")
  end

  # Returns Strings, and numbers of facts.
  def split(bytes)
    return unless @patterns.any? { |here,| bytes.include?(here) }

    @patterns.reduce([bytes]) do |pieces, (here, number)|
      pieces.flat_map { |piece| piece.is_a?(Integer) ? [piece] : parts(piece, here, number) }
    end
  end

  def parts(piece, here, number)
    piece.split(here, -1).flat_map { |part| [part, number] }[0..-2].reject { |part| part == "" }
  end

  def read(name)
    StartComparison.rows(@directory, name)
  end

  def noise
    File.binread("#{@directory}/noise").split("\n").to_h { |path| [path, true] }
  rescue SystemCallError
    {}
  end

  def write(name, entries)
    File.binwrite("#{@directory}/#{name}", entries.join)
  end
end

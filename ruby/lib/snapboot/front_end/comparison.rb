# frozen_string_literal: true

# The contents of a process, in a form that can be compared with another boot: see crates/freeze programs/derived.rs.
#
# Each string, and each number or truth value that an object keeps, with the secrets taken out, becomes a digest. Use this
# only in a process that is not frozen, since it leaves many objects behind.
class Comparison
  SIZE = 8
  # Kinds of values other than strings.
  PLAIN = [Integer, Float, TrueClass, FalseClass, NilClass].freeze
  # At most this many objects are named.
  MAX = 20
  VARIABLES = Kernel.instance_method(:instance_variables)
  VALUE = Kernel.instance_method(:instance_variable_get)
  CLASS = Kernel.instance_method(:class)
  NAME = Module.instance_method(:name)

  # +patterns+: the secrets to take out. +own+: strings that belong to the front end.
  def initialize(directory, patterns, own)
    require "digest"
    @own_texts = own
    @directory = directory
    @marks = patterns.keys.each_with_index.map { |text, index| [text, "\0#{index}\0".b] }
  end

  # Writes the digests of all contents.
  def write
    @own = [digests = {}]
    contents { |content| digests[digest(content)] = true }
    File.binwrite("#{@directory}/texts", digests.keys.sort.join)
  end

  # Describes in words who holds what another boot lacks.
  def derived
    file = "#{@directory}/suspects"
    return [] unless File.exist?(file)

    suspects = File.binread(file).scan(/.{#{SIZE}}/mno).to_h { |it| [it, true] }
    @own = [suspects, found = {}]
    contents { |content, holder| (found[content] ||= []) << holder if suspects.key?(digest(content)) }
    name_holders(found)
  end

  private

  def digest(content)
    Digest::MD5.digest(content).byteslice(0, SIZE)
  end

  # Yields each content with its holder, if the holder is known.
  def contents(&block)
    own = [@directory, *@own_texts, *@marks.flatten].to_h { |text| [text.__id__, true] }
    strings = ObjectSpace.each_object(String).to_a
    strings.each { |text| yield plain(text), text unless own.key?(text.__id__) }
    objects = ObjectSpace.each_object(Object).to_a
    objects.each { |object| values(object, &block) }
    hashes(&block)
    return unless Object.const_defined?(:OpenSSL)

    %i[HMAC Digest].each do |name|
      next unless OpenSSL.const_defined?(name)

      ObjectSpace.each_object(OpenSSL.const_get(name)) { |object| yield "digest:#{object.digest}".b, object }
    end
  end

  def plain(text)
    bytes = text.b
    @marks.each { |pattern, mark| bytes = bytes.gsub(pattern, mark) if bytes.include?(pattern) }
    bytes
  end

  # Returns the numbers and truth values in the instance variables of an object.
  def values(object)
    return if object.equal?(self)

    VARIABLES.bind_call(object).each do |name|
      value = VALUE.bind_call(object, name)
      yield "#{name}=#{value.inspect}".b, object if PLAIN.include?(CLASS.bind_call(value))
    end
  end

  # Yields those in hashes.
  def hashes
    ObjectSpace.each_object(Hash).to_a.each do |hash|
      next if !hash.instance_of?(Hash) || hash.compare_by_identity? || @own.any? { |own| own.equal?(hash) }

      hash.each do |key, value|
        named = key.instance_of?(Symbol) || key.instance_of?(String)
        yield plain("#{key}=#{value.inspect}"), hash if named && PLAIN.include?(CLASS.bind_call(value))
      end
    end
  end

  # Names the holders of those held by an instance variable, a constant or a Hash.
  def name_holders(found)
    wanted = {}.compare_by_identity
    found.each { |content, holders| holders.each { |holder| wanted[holder] = content } }
    named = {}.compare_by_identity
    ObjectSpace.each_object(Object).to_a.each do |object|
      VARIABLES.bind_call(object).each do |name|
        value = VALUE.bind_call(object, name)
        named[value] ||= "#{name} of #{owner(object)}" if wanted.key?(value)
      end
    end
    ObjectSpace.each_object(Module).to_a.each { |owner| constants(owner, wanted, named) }
    name_in_hashes(wanted, named)
    names = found.map do |content, holders|
      named.values_at(*holders).compact.first || unnamed(holders.first, content)
    end
    names.uniq.sort.first(MAX)
  end

  def name_in_hashes(wanted, named)
    ObjectSpace.each_object(Hash).to_a.each do |hash|
      next if !hash.instance_of?(Hash) || [wanted, named, *@own].any? { |own| own.equal?(hash) }

      hash.each do |key, value|
        named[value] ||= "the value #{"of #{key.inspect} " if key.instance_of?(Symbol)}in a Hash" if wanted.key?(value)
      end
    end
  end

  def constants(owner, wanted, named)
    owner.constants(false).each do |name|
      next if owner.autoload?(name, false)

      value = owner.const_get(name, false)
      named[value] ||= "#{NAME.bind_call(owner)}::#{name}#{place(owner, name)}" if wanted.key?(value)
    rescue StandardError, ScriptError
      next
    end
  end

  def place(owner, name)
    file, line = owner.const_source_location(name, false)
    file && " (#{file}:#{line})"
  end

  def owner(object)
    kind = Module === object ? object : CLASS.bind_call(object) # rubocop:disable Style/CaseEquality
    name = NAME.bind_call(kind) || "a class without a name"
    file, line = Object.const_source_location(name) if NAME.bind_call(kind)
    "#{"an object of " unless kind.equal?(object)}#{name}#{" (#{file}:#{line})" if file}"
  rescue NameError
    "an object of #{name}"
  end

  def unnamed(holder, content)
    return "a String that is part of another object, of #{content.bytesize} bytes," if holder.is_a?(String)

    "#{content[/\A[\w@?!.-]+(?==)/] || "a value"} of #{owner(holder)}"
  end
end

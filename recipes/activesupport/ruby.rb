# frozen_string_literal: true

# Files that Active Support decrypts with a key from the environment, as Rails does with its credentials (RAILS_MASTER_KEY).
# No made-up key can decrypt them. The boot is given what is in the file with a made-up text in the place of each text, and
# each thaw decrypts the file and puts the real ones there.
module EncryptedFileRecipe
  SOURCE = "/active_support/encrypted_file.rb"
  # Shorter texts are no secrets, or could not be found again among all others (characters).
  SHORTEST = 6
  # What says where something is, before user and password.
  SCHEME = %r{\A[A-Za-z0-9+.-]+://}
  KINDS = { "a".."z" => ["a".."z", "a".."f"], "A".."Z" => ["A".."Z", "A".."F"], "0".."9" => ["0".."9"] }.freeze
  private_constant :SOURCE, :SHORTEST, :SCHEME, :KINDS

  class << self
    include Recipes::Defaults

    # True when such a file was decrypted.
    def applies?
      !@files.nil?
    end

    # The key is read right before a file is decrypted.
    def reading(what, reader, _reads)
      return unless reader.end_with?(SOURCE) && RealSecrets.include?(what)

      @files ||= {}
      @wrappers ||= Wrappers.new
      @wrappers.wrap(ActiveSupport::EncryptedFile, :decrypt) do |file, original, arguments|
        RealSecrets.include?(file.env_key) ? invented(file, original, arguments) : original.call(*arguments)
      end
    end

    def before_freeze
      @wrappers&.take_off
    end

    # The made-up texts, and what reads the real ones.
    def computed_of_secrets
      @files.values.compact.flat_map do |file, _, texts|
        read = nil
        texts.map { |path, made| [made, -> { text_at(read ||= content(decrypted(file)), path) }] }
      end
    end

    private

    # What the boot is told of a file: the same each time. Where nobody can decrypt it, that ends as it would in a start.
    def invented(file, original, arguments)
      _, text, = @files[arguments.first] ||= made_up(file, original, arguments)
      text ? text.dup : original.call(*arguments)
    end

    # The file, what it says with made-up texts, and where these are; nil where it cannot be decrypted.
    def made_up(file, original, arguments)
      made = RealSecrets.compute { Marshal.dump(invent(original.call(*arguments))) }
      [file, *Marshal.load(made)] if made # rubocop:disable Security/MarshalLoad -- a child of this process has written it
    end

    # Returns a text like +text+ with other texts in it, and where which of them are.
    def invent(text)
      found = {}
      made = exchange(content(text), [], found)
      [made.is_a?(String) ? made : YAML.dump(made), found]
    end

    # A file is YAML with names in it, or one text.
    def content(text)
      data = YAML.respond_to?(:unsafe_load) ? YAML.unsafe_load(text) : YAML.load(text) # rubocop:disable Security/YAMLLoad
      data.is_a?(Hash) ? data : text
    rescue Psych::SyntaxError
      text
    end

    def exchange(data, path, found)
      case data
      when Hash then data.to_h { |key, value| [key, exchange(value, [*path, key], found)] }
      when Array then data.each_with_index.map { |value, at| exchange(value, [*path, at], found) }
      when String then data.size < SHORTEST ? data : (found[path] = alike(data))
      else data
      end
    end

    # A text of the same kinds of characters, in the same order. Of an address only user and password are others.
    def alike(text)
      scheme = text[SCHEME].to_s
      rest = text[scheme.size..]
      size = scheme.empty? ? rest.size : rest[%r{\A[^/?#]*@}].to_s.size
      chance = Random.new
      letters = rest[0, size].match?(/\A[\h-]+\z/) ? -1 : 0
      made = rest[0, size].gsub(/[A-Za-z0-9]/) do |letter|
        KINDS.find { |kind, _| kind.cover?(letter) }.last[letters].to_a.sample(random: chance)
      end
      scheme + made + rest[size..]
    end

    def decrypted(file)
      ActiveSupport::EncryptedFile.new(content_path: file.content_path, key_path: file.key_path, env_key: file.env_key,
                                       raise_if_missing_key: true).read
    end

    # Raises KeyError or TypeError where there is none, so that the start is an ordinary one.
    def text_at(data, path)
      String.try_convert(path.reduce(data) { |part, key| part.fetch(key) }) || raise(TypeError)
    end
  end
end

Recipes.register(EncryptedFileRecipe)

# Hooks that run when a part of a framework is loaded (`ActiveSupport.on_load`). An application registers them while it is
# initialised. If that part was loaded earlier, each would run at once, in another order. Once it is initialised, all are
# there, and the framework loads its parts in any order, as the application comes to use them.
module LoadHooksRecipe
  GEMS = %w[railties actioncable actionmailbox actionmailer actionpack actiontext actionview activejob activemodel
            activerecord activestorage activesupport].freeze
  PARTS = %r{/(?:#{GEMS.join("|")})-\d[^/]*/(?:app|lib)/}
  private_constant :GEMS, :PARTS

  class << self
    include Recipes::Defaults

    def applies?
      false
    end

    # The framework's parts add to each other.
    def may_reopen?(feature)
      initialised? && feature.match?(PARTS)
    end

    # A feature that runs such hooks is left to the program.
    def trying(trial)
      return if initialised?
      return watch(trial) if found

      TracePoint.new(:end) { |event| watch(trial) if event.self.equal?(found) }.enable
    end

    private

    # Whether a whole application of Rails is in the image.
    def initialised?
      Object.const_defined?(:Rails) && Rails.respond_to?(:application) && Rails.application&.initialized?
    end

    def found
      return unless Object.const_defined?(:ActiveSupport) && ActiveSupport.const_defined?(:LazyLoadHooks, false)

      ActiveSupport.const_get(:LazyLoadHooks)
    end

    def watch(trial)
      original = found.instance_method(:run_load_hooks)
      found.define_method(:run_load_hooks) do |name, *base|
        trial.record_effect("runs the load hooks of #{name}")
        original.bind_call(self, name, *base)
      end
    end
  end
end

Recipes.register(LoadHooksRecipe)

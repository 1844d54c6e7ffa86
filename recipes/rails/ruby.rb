# frozen_string_literal: true

# A Rails application booted by --preload ./config/environment.
module RailsRecipe
  # What `bin/rails` loads for every command, and for the runner.
  MAIN_FEATURES = %w[rails/command rails/commands/runner/runner_command thor/shell/color].freeze
  # Commands that choose the Rails environment themselves, or are not about this application, with their aliases. They are
  # guards, which match any argument.
  COMMANDS = %w[new plugin test t test:all test:db test:system test:models test:controllers test:helpers test:mailers
                test:jobs test:channels test:functionals test:units test:integration test:generators].freeze

  class << self
    include Recipes::Defaults

    # True when an application has been initialized.
    def applies?
      Object.const_defined?(:Rails) && Rails.respond_to?(:application) && !Rails.application.nil?
    end

    # Loads what the main part surely needs.
    def load_main(script)
      MAIN_FEATURES.each { |feature| require feature } if applies? && File.basename(script) == "rails"
    rescue LoadError
      nil # another version of Rails: it loads them after the thaw
    end

    # Keys that were derived from secret_key_base, for verifiers that a boot makes: Rails keeps them by salt and size.
    def computed_of_secrets
      return [] unless Object.const_defined?(:ActiveSupport) && ActiveSupport.const_defined?(:CachingKeyGenerator)

      ObjectSpace.each_object(ActiveSupport::CachingKeyGenerator).flat_map do |caching|
        generator = caching.instance_variable_get(:@key_generator)
        kept = caching.instance_variable_get(:@cache_keys)
        kept.keys.map { |name| [kept[name], derivation(generator, name)] }.select { |key, again| again.call == key }
      end
    end

    # Arguments that would have decided otherwise what the boot has decided.
    def guards
      others = Dir.glob("#{Rails.root}/config/environments/*.rb").map { |file| File.basename(file, ".rb") }
      others.delete(Rails.env.to_s)
      COMMANDS + %w[-e --environment] + others.flat_map { |name| ["-e#{name}", "--environment=#{name}"] }
    end

    private

    # What derives the key of that name: its salt, and its size where that was given.
    def derivation(generator, name)
      salt, size = name.match(/\A(.*)\|(\d+)\z/m)&.captures
      arguments = salt ? [salt, size.to_i] : [name]
      -> { generator.generate_key(*arguments) }
    end
  end
end

Recipes.register(RailsRecipe)

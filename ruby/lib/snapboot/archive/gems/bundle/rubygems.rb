# frozen_string_literal: true

module Snapboot
  module Archive
    module Gems
      module Bundle
        # The specifications that RubyGems knows: in class variables of Gem::Specification, since RubyGems 3.6 in an object
        # of their own.
        module RubyGems
          NAMES = %w[all stubs stubs_by_name].freeze

          class << self
            # Returns them as a Hash by name. Raises NameError if RubyGems stores them otherwise.
            def specifications
              NAMES.to_h { |name| [name, record ? record.instance_variable_get("@#{name}") : class_variable(name)] }
            end

            # Sets those of these names.
            def replace(named)
              named.each do |name, value|
                next record.instance_variable_set("@#{name}", value) if record

                Gem::Specification.class_variable_set("@@#{name}", value) # rubocop:disable Style/ClassVars
              end
            end

            private

            def record
              Gem::Specification.specification_record if Gem::Specification.respond_to?(:specification_record)
            end

            def class_variable(name)
              Gem::Specification.class_variable_get("@@#{name}")
            end
          end
        end
      end
    end
  end
end

# frozen_string_literal: true

module Snapboot
  module Archive
    module Gems
      module Bundle
        # Extends the set of specifications that RubyGems sees after a set-up from the archive. Default gems, which belong to
        # every bundle, are loaded when the program looks up a gem outside of it.
        module Specifications
          # Extends Bundler's side of RubyGems.
          module DefaultGems
            # See Bundler::RubygemsIntegration.
            def add_default_gems_to(specs)
              specs.is_a?(Specifications) ? specs.by_name : super
            end
          end

          # A Hash of the specifications by their names.
          def by_name
            set = self
            names = Hash.new { |_, name| set.with_default_gems.fetch(name, nil) }
            names.define_singleton_method(:values) { set.with_default_gems.values }
            each { |specification| names[specification.name] = specification }
            @names = names
          end

          # Adds the default gems to the set and to the result of by_name. Returns that.
          def with_default_gems
            names = @names
            @names = names.default_proc = nil
            names.singleton_class.remove_method(:values)
            add = ::Bundler::RubygemsIntegration.instance_method(:add_default_gems_to)
            names.replace(add.bind_call(::Bundler.rubygems, self))
          end

          # Methods that count them.
          %i[size length find_by_name_and_platform].each do |name|
            define_method(name) do |*arguments|
              with_default_gems if @names
              super(*arguments)
            end
          end
        end
      end
    end
  end
end

# frozen_string_literal: true

module Snapboot
  module Archive
    module Pure
      # Writes the queue before a process ends without its exit handlers (exit!), executes another program (exec) or forks
      # (Process.daemon does that by itself).
      module Endings
        # Frames of this name count as the runtime's own.
        FRAMES = ["<internal:snapboot/endings>", 1].freeze
        NAMES = %w[exec exit!].freeze
        private_constant :FRAMES, :NAMES

        # Prepended to Process._fork, which all forks go through since Ruby 3.1.
        module Fork
          def _fork
            Endings.write
            super
          end
        end

        class << self
          # The block, or that of the last call, writes. Takes effect at once; returns nothing.
          def install(&write)
            is_installed = @write
            @write = write
            return if is_installed

            NAMES.each do |name|
              [[Kernel, true], [Kernel.singleton_class, false], [Process.singleton_class, false]].each do |owner, is_private|
                hook(owner, name, is_private)
              end
            end
            hook(Process.singleton_class, "daemon", false) if Process.respond_to?(:daemon)
            Process.singleton_class.prepend(Fork) if Process.respond_to?(:_fork)
          end

          # Writes the queue.
          def write
            @write.call
          end

          private

          def hook(owner, name, is_private)
            before = "snapboot_#{name.delete("!")}_before"
            owner.class_eval do
              alias_method before, name
              alias_method name, name # avoids a warning about the redefinition
              class_eval <<~RUBY, *FRAMES # rubocop:disable Style/DocumentDynamicEvalDefinition, Style/EvalWithLocation
                def #{name}(...)
                  ::Snapboot::Archive::Pure::Endings.write
                  #{before}(...)
                end
              RUBY
              private before
              private name if is_private
            end
          end
        end
      end
    end
  end
end

# frozen_string_literal: true

# The wrappers that `run.rb` puts around Ruby's own methods. The value is called with the recording run; +asks_for_code+:
# whether Ruby should report that it has found a file.
lambda do |run, asks_for_code:|
  features = Kernel.instance_method(:require)
  # RubyGems keeps Ruby's own under that name.
  plain = Kernel.private_method_defined?(:gem_original_require) ? Kernel.instance_method(:gem_original_require) : features
  relative = Kernel.instance_method(:require_relative)
  files = Kernel.instance_method(:load)
  handlers = Kernel.instance_method(:at_exit)
  name = ->(path) { path.is_a?(String) ? path : path.to_s }

  [Kernel, Kernel.singleton_class].each do |owner|
    owner.module_eval do
      define_method(:require) do |path|
        next features.bind_call(self, path) unless run.here?

        run.feature(name.call(path), asks_plain: true) { features.bind_call(self, path) }
      end

      # Bundler replaces RubyGems' with Ruby's own.
      if method_defined?(:gem_original_require) || private_method_defined?(:gem_original_require)
        define_method(:gem_original_require) do |path|
          next plain.bind_call(self, path) if !run.here? || run.asked_for?

          run.feature(name.call(path)) { plain.bind_call(self, path) }
        end
        private :gem_original_require
      end

      define_method(:require_relative) do |path|
        from = caller_locations(1, 1)&.first
        base = from&.absolute_path
        # Ruby uses the path of its caller, which is this method then.
        next relative.bind_call(self, path) unless base

        path = path.respond_to?(:to_path) ? path.to_path : path
        feature = File.absolute_path(path, File.dirname(base))
        next plain.bind_call(self, feature) unless run.here?

        run.feature(feature) { plain.bind_call(self, feature) }
      end

      define_method(:load) do |path, wrap = false|
        next files.bind_call(self, path, wrap) unless run.here?

        run.feature(name.call(path)) { files.bind_call(self, path, wrap) }
      end

      define_method(:at_exit) do |&block|
        next handlers.bind_call(self) unless block

        handlers.bind_call(self, &block)
        # The handler registered last is called first.
        handlers.bind_call(self) { run.end_main }
        block
      end
    end
  end
  ending = Kernel.instance_method(:exit!)
  executing = Kernel.instance_method(:exec)
  [Kernel, Kernel.singleton_class, Process.singleton_class].each do |owner|
    owner.module_eval do
      define_method(:exit!) { |*status| run.write_before { ending.bind_call(self, *status) } }
      define_method(:exec) do |*words, **options|
        program = Array(words.find { |word| !word.is_a?(Hash) }).first.to_s
        run.write_before(program) { executing.bind_call(self, *words, **options) }
      end
    end
  end
  Kernel.module_eval { private :require, :require_relative, :load, :at_exit, :exit!, :exec }

  next unless asks_for_code

  RubyVM::InstructionSequence.define_singleton_method(:load_iseq) do |path|
    run.found(path)
    nil
  end
end

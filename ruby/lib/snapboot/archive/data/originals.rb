# frozen_string_literal: true

module Snapboot
  module Archive
    module Data
      # The methods that a parser runs between a file and its objects, as they were when it had been loaded. A program that
      # changed one of them wants to be heard, whether the archive knows the file or not.
      class Originals
        # methods: names of methods by name of their class, or of their module, of whose singleton class they are then; those
        # that this version of the library does not have are left out. directory: how the paths of the library's files begin.
        def initialize(methods, directory)
          @methods = methods.flat_map do |owner, names|
            owner = Object.const_get(owner)
            owner = owner.singleton_class unless owner.is_a?(Class)
            names = names.select { |name| owner.method_defined?(name) || owner.private_method_defined?(name) }
            names.map { |name| [owner, name, owner.instance_method(name)] }
          end
          @genuine = @methods.all? do |_, _, method|
            file, = method.source_location
            file.nil? || file.start_with?(directory, "(eval", "<internal")
          end
        end

        # Whether all of them are the library's own, still.
        def intact?
          @genuine && @methods.all? { |owner, name, method| owner.instance_method(name) == method }
        end
      end
    end
  end
end

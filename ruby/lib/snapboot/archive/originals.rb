# frozen_string_literal: true

module Snapboot
  module Archive
    # The methods of a library that the archive replaces, in their state after the library was loaded. If a program has
    # changed one of them, its version must be called, whether the archive knows the answer or not.
    class Originals
      # Redefines a method by `source`, with the same visibility. Not prepended: a later redefinition replaces it. owner: the
      # class, or the singleton class. original: the new private name of the previous method. where: file and line of the
      # source.
      def self.hook(owner, name, original, source, *where)
        is_private = owner.private_method_defined?(name)
        owner.class_eval do
          alias_method original, name
          alias_method name, name # avoids a warning about the redefinition
          class_eval source, *where
          private original
          private name if is_private
        end
      end

      # methods: by name of a class, names of its methods, or :all for its own ones; by name of a module, those of its
      # singleton class. Methods that this version of the library lacks are left out. directory: the common prefix of the
      # paths of the library's files.
      def initialize(methods, directory)
        @methods = methods.flat_map do |owner, names|
          owner = Object.const_get(owner)
          owner = owner.singleton_class unless owner.is_a?(Class)
          own = owner.instance_methods(false) + owner.private_instance_methods(false) if names == :all
          names = own || names.select { |name| owner.method_defined?(name) || owner.private_method_defined?(name) }
          names.map { |name| [owner, name, owner.instance_method(name)] }
        end
        @genuine = @methods.all? do |_, _, method|
          file, = method.source_location
          file.nil? || file.start_with?(directory, "(eval", "<internal")
        end
      end

      # Whether all of them are still the library's own.
      def intact?
        @genuine && @methods.all? { |owner, name, method| owner.instance_method(name) == method }
      end
    end
  end
end

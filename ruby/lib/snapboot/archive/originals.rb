# frozen_string_literal: true

module Snapboot
  module Archive
    # The methods of a library that the archive answers in the place of, as they were when the library had been loaded. A
    # program that changed one of them wants to be heard, whether the archive knows the answer or not.
    class Originals
      # Redefines a method by `source`, with the same visibility. Not prepended: a later redefinition replaces it.
      # owner: the class, or the singleton class. original: the private name, from now on, of the method that was there.
      # where: file and line of the source.
      def self.hook(owner, name, original, source, *where)
        is_private = owner.private_method_defined?(name)
        owner.class_eval do
          alias_method original, name
          alias_method name, name # no warning that it is defined again
          class_eval source, *where
          private original
          private name if is_private
        end
      end

      # methods: names of methods, or :all for its own ones, by name of their class, or of their module, of whose singleton
      # class they are then; those that this version of the library does not have are left out. directory: how the paths of
      # the library's files begin.
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

      # Whether all of them are the library's own, still.
      def intact?
        @genuine && @methods.all? { |owner, name, method| owner.instance_method(name) == method }
      end
    end
  end
end

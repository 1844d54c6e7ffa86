# frozen_string_literal: true

require_relative "options"
require_relative "../originals"

module Snapboot
  module Archive
    module Data
      # The common part of all kinds of data files: one entry for a file and the way it is parsed. Its payload has one of
      # three forms, of which each Ruby uses the fastest available:
      module Documents
        # Larger files are left to their parser: writing their literals would take too long.
        LARGEST_SOURCE = 8 << 20
        FORM = if Archive.const_defined?(:Native) && Native.respond_to?(:document) then :notation
               elsif defined?(RubyVM::InstructionSequence) then :compiled
               else
                 :source
               end
        # Part of an entry's description.
        RUNTIME = [
          FORM, RUBY_ENGINE, RUBY_ENGINE_VERSION, RUBY_VERSION, RUBY_PATCHLEVEL, RUBY_REVISION, RUBY_PLATFORM
        ].join(" ").freeze
        NAME = "snapboot data" # of the literal, should it ever be in a backtrace
        FILE = ::File
        MISSING = Object.new.freeze # nil and false are documents, too
        private_constant :FILE, :MISSING

        @tried = {} # identities of files by path and description
        @lock = Mutex.new

        class << self
          # Returns the document in the file `name`, parsed as the text `description` says: from the archive, or else by
          # yielding, and then stores it. The block's errors reach the caller. `traits` is called after the block, with the
          # absolute path: it returns what Writer needs to know of the document, or nil if that depends on more than the
          # file and `sources`, an Array of further inputs.
          def answer(name, description, traits, sources = [], &parse)
            path = Archive.attempt(name) { path(name) }
            return yield unless path

            document = Archive.attempt(path, MISSING) { fetch(path, description) }
            MISSING.equal?(document) ? parse(path, description, traits, sources, &parse) : document
          end

          # Returns the object as a payload, or nil if exactly such an object cannot be made again. `traits`: see
          # Writer.write.
          def dump(object, **traits)
            require_relative FORM == :notation ? "notation" : "literal"
            return Notation.write(object, **traits) if FORM == :notation

            source = Literal.write(object, **traits)
            return source unless source && FORM == :compiled
            return if defined?(::Coverage) && ::Coverage.running? # it would count the literal as a file of the program

            RubyVM::InstructionSequence.compile(source, NAME, nil, 1).to_binary
          end

          # Returns the object of a payload; a new one in each call.
          def load(payload)
            case FORM
            when :notation then Native.document(payload).fetch(0)
            when :compiled then RubyVM::InstructionSequence.load_from_binary(payload).eval
            else
              eval(String.new(payload, encoding: Encoding::UTF_8), nowhere, NAME, 1) # rubocop:disable Security/Eval
            end
          end

          private

          # Returns the absolute path of a file that a caller names, without accessing it; nil if the name is not a String or
          # Pathname, or if File is not Ruby's own (FakeFS).
          def path(name)
            return unless FILE.equal?(::File)

            name = name.to_path if defined?(::Pathname) && name.is_a?(::Pathname)
            return unless name.is_a?(String)

            name.start_with?("/") ? name : FILE.join(Dir.pwd, name)
          end

          def fetch(path, description)
            Archive.answering(path, MISSING) do
              payload = Archive.fetch(:data, path, context: description)
              payload ? load(payload) : MISSING
            end
          end

          def parse(path, description, traits, sources)
            identity = Archive.attempt(path) { Archive.identity(path) }
            document = yield
            is_new = identity && new?(path, identity, description)
            Archive.attempt(path) { remember([[:file, path, identity], *sources], document, description, traits) } if is_new
            document
          end

          # Whether this process has not yet tried to store exactly that.
          def new?(path, identity, description)
            Archive.attempt(path) do
              @lock.synchronize do
                tried = @tried[[path, description]]
                @tried[[path, description]] = identity
                tried != identity
              end
            end
          end

          def remember(inputs, document, description, traits)
            _, path, = inputs.first
            return unless FILE.file?(path) && FILE.size(path) <= LARGEST_SOURCE

            known = traits.call(path)
            payload = known && dump(document, **known)
            Archive.store(:data, path, inputs, payload, context: description) if payload
          end

          # Returns a binding without variables, a new one for each literal.
          def nowhere
            TOPLEVEL_BINDING.receiver.instance_eval { binding }
          end
        end
      end
    end
  end
end

# frozen_string_literal: true

module Snapboot
  module Archive
    # The back end for CRuby: libsnapboot_ruby.so, which defines these methods when it is loaded:
    #
    # - open(script or nil, folder or nil): opens the archive of the program with that main script, which was started in that
    #   folder (nil: the working directory). Returns nil, or why there is none.
    # - place, root: the archive's path, and the application's root. nil before `open`.
    # - identity(path), fetch(kind number, name, context) -> [number of the event, payload or nil],
    #   store(kind number, name, inputs, payload, context), flush -> nil or why nothing was written, counters -> four
    #   numbers.
    #   What is queued is also written soon after the boot has calmed down, and before exec, exit! and every fork.
    # - list_tree(array of paths, with links) and tree_state(paths), for Snapboot::Archive's methods of these names. Where no
    #   time counts (SNAPBOOT_ARCHIVE_POLICY=content) both are nil.
    # - document(payload of Data::Notation, frozen) -> an Array of the object, or nil if it is none.
    # - switch_on(code, lookups): has require, require_relative, load and autoload served by the archive, as far as these
    #   parts are switched on. Returns nil, or what is not.
    # - keeps_code?: whether code gets into the archive.
    # - compile(path or feature with extension): keeps the code of a script without running it, for build.rb.
    # - tell_look_ups: calls Snapboot::Archive.tell_code at every look-up of code from now on, and tell_compiled where Ruby
    #   had to compile it.
    # - frames: the frames that are being executed, the innermost first, as arrays of a Thread::Backtrace::Location, the
    #   Binding (nil for C code) and the receiver. For a process that is compared with another boot.
    # - await_file(name): calls Snapboot::Archive.tell_loaded when a file of that name has been loaded by require.
    module Native
      # Paths of the library: beside this gem's files, after `make install`, in the build of a checkout.
      PLACES = %w[.. ../../../.. ../../../../target/release].freeze
      private_constant :PLACES

      # Loads the library, once. Returns nil, or a String that says why there is none.
      def self.load_library
        return if respond_to?(:open)

        place = PLACES.find { |candidate| File.file?("#{__dir__}/#{candidate}/libsnapboot_ruby.so") }
        return "libsnapboot_ruby.so was expected beside #{__dir__}; reinstall Snapboot" unless place

        library = File.expand_path("#{place}/libsnapboot_ruby.so", __dir__)
        return "#{library} is not whole; reinstall Snapboot" unless whole?(library)

        require library
        nil
      rescue LoadError => e
        "this Ruby cannot load libsnapboot_ruby.so: #{e.message}"
      end

      # Whether a library is complete. The dynamic linker would map a truncated one, and the process would crash.
      def self.whole?(library)
        header = File.binread(library, 64)
        return false unless header&.bytesize == 64 && header.start_with?("\x7fELF".b)

        # See elf(5): the section headers come last. Their offset, their size and their number.
        sections = header[40, 8].unpack1("Q<")
        each, count = header[58, 4].unpack("S<S<")
        File.size(library) >= sections + (each * count)
      end
      private_class_method :whole?
    end
  end
end

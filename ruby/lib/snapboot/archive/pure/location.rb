# frozen_string_literal: true

module Snapboot
  module Archive
    module Pure
      # The locations of a program's files and of its archive: the rules of crates/archive/src/location.rs. The cases of
      # tests/archive/locations.json test both.
      class Application
        GEMFILES = %w[Gemfile gems.rb].freeze
        private_constant :GEMFILES

        # The directory that names in the archive are relative to: absolute.
        attr_reader :root

        # gemfile: BUNDLE_GEMFILE or nil; script: the main script or nil; directory: the working directory.
        def initialize(gemfile, script, directory)
          script &&= File.expand_path(script, directory)
          home = bundle_home(gemfile, script, directory)
          @has_gemfile = !home.nil?
          @anchor = home || script || "/"
          @root = home || File.dirname(@anchor)
        end

        # Returns the path of its archive unless SNAPBOOT_ARCHIVE names another, or nil. cache_home: XDG_CACHE_HOME or nil;
        # home: HOME or nil, counts if it exists and belongs to this user or root. The block returns the SHA-256 of a String.
        def place(cache_home, home)
          return "#{@root}/tmp/cache/snapboot.archive" if @has_gemfile && @root != "/" && File.directory?("#{@root}/tmp")

          cache = cache_home if cache_home&.start_with?("/")
          cache ||= "#{home}/.cache" if home&.start_with?("/") && File.directory?(home) && own?(home)
          return unless cache

          name = @anchor == "/" ? "ruby" : File.basename(@anchor)
          "#{cache.chomp("/")}/snapboot/archives/#{name}-#{yield(@anchor.b).unpack1("H16")}.archive"
        end

        private

        def own?(home)
          [0, Process.euid].include?(File.stat(home).uid)
        end

        def bundle_home(gemfile, script, directory)
          return File.dirname(File.expand_path(gemfile, directory)) if gemfile && !gemfile.empty?

          above(script && File.dirname(script)) || above(directory)
        end

        # The nearest directory with a Gemfile, from this one up.
        def above(directory)
          while directory
            return directory if GEMFILES.any? { |name| File.file?(File.join(directory, name)) }

            directory = directory == "/" ? nil : File.dirname(directory)
          end
        end
      end

      # Names in an archive: paths below the application's root are relative to it.
      class Root
        # The root, without a slash at its end.
        attr_reader :path

        def initialize(path)
          @path = path.b.chomp("/").freeze
          @prefix = "#{@path}/".freeze
        end

        # The name of an absolute path.
        def name(path)
          path = path.b
          return path unless path.start_with?(@prefix) && !@path.empty? && path.bytesize > @prefix.bytesize

          "./#{path.byteslice(@prefix.bytesize..)}"
        end

        # Returns the path of a name, in UTF-8 for Ruby: the JVMs would take the bytes of a binary String for characters.
        def join(name)
          (name.start_with?("./") ? @path + name.byteslice(1..) : name.dup).force_encoding(Encoding::UTF_8)
        end
      end
    end
  end
end

# frozen_string_literal: true

module Snapboot
  module Archive
    module Pure
      # From the name of a feature to its file, without a look at each directory of the load path.
      #
      # It answers only what it is sure of; for all else the runtime looks itself. Directories are looked at again when a
      # name is not found, and from time to time, so that looking costs at most a fiftieth of the time that passes.
      class LoadPath
        # Names that mean a file below the load path, without superfluous parts; simple, because TruffleRuby takes 0.1 s for
        # the first match of a pattern that is not. The runtime treats others, and those with the extensions below, in a way
        # of its own.
        USUAL = %r{\A[\w+-][\w.+-]*(?:/[\w+-][\w.+-]*)*\z}
        UNUSUAL = %r{\A[^/]|/\.|//|/\z}
        NATIVE = %w[.so .o .dll .bundle .jar .class].freeze
        # Seconds between two looks at a directory: fifty times what one takes, the JVMs' being slow.
        PAUSE = 50 * (RUBY_ENGINE == "ruby" ? 0.000_005 : 0.000_2)
        private_constant :USUAL, :UNUSUAL, :NATIVE, :PAUSE

        def initialize(directories)
          @directories = directories
          @loaded = Loaded.here
          @lock = Mutex.new
          @listings = {} # of directories, by path
          @holders = {} # directories of the load path by names in them
          @below = {} # listings of directories below them, by path
        end

        # The path of the file that `require name` would load, if it is not loaded yet; :missing if there is none, nil if the
        # runtime has to be asked.
        def find(name)
          return unless name.instance_of?(String) && name.match?(USUAL) && !name.end_with?(*NATIVE)

          @lock.synchronize do
            refresh
            next unless @usable
            next if @loaded.include?(name, @ranks)

            found = search(name)
            found = search(name) if found.nil? && sees_all? && look_again
            found || (:missing if found.nil? && sees_all?)
          end
        rescue ThreadError # in a signal handler
          nil
        end

        private

        # The path of the file; false where the runtime has to be asked, nil where there is none.
        def search(name)
          @is_unsure = false
          folder, _, base = name.rpartition("/")
          file = base.end_with?(".rb") ? base : "#{base}.rb"
          ruby = first_with(folder, file)
          native = NATIVE.map { |extension| first_with(folder, base + extension) }.compact.min
          return false if @is_unsure
          return native && false unless ruby
          return false if ruby >= @opaque || (native && native < ruby)

          path = [@paths[ruby], *(folder unless folder.empty?), file].join("/")
          File.file?(path) && File.readable?(path) && path
        end

        # The rank of the first directory of the load path that has this file in that folder below it; nil: none has.
        def first_with(folder, file)
          return rank(@holders[file]) if folder.empty?

          holders = @holders[folder.partition("/").first] or return
          rank(holders.select { |path| names_below(path, folder)&.include?("/#{file}/") })
        end

        def rank(directories)
          directories&.map { |path| @ranks[path] }&.compact&.min
        end

        # The names in `folder` below a directory; nil where there is no such one.
        def names_below(directory, folder)
          path = "#{directory}/#{folder}"
          above, slash, last = folder.rpartition("/")
          listed = @below[path]
          return unless listed || slash.empty? || names_below(directory, above)&.include?("/#{last}/")

          listed ||= @below[path] = @directories.look(path)
          @is_unsure ||= listed.equal?(Directories::CLOSED)
          listed.names
        end

        # Whether all that can be found is in directories that are listed here.
        def sees_all?
          @opaque == @seen.size
        end

        # Takes notice of changes of the load path, and looks at directories if it is time.
        def refresh
          if changed?
            expand
            look_at(@ranks.keys.reject { |path| @listings.key?(path) })
          elsif now > @look_again_at
            look_again
          end
        end

        def changed?
          return true if @working_directory && @working_directory != Dir.pwd
          return @version != (@version = $LOAD_PATH.version) if $LOAD_PATH.respond_to?(:version)

          @seen != $LOAD_PATH
        end

        # Works out which directories the load path consists of now.
        def expand
          @usable = false # until all is well: some elements cannot be compared with anything
          @seen = $LOAD_PATH.dup
          @ranks = {}
          @paths = []
          @working_directory = nil
          @opaque = @seen.size
          return unless @seen.all?(String)

          @seen.zip(expanded_by_runtime).each_with_index do |(entry, expanded), rank|
            path = directory(entry, expanded)
            @opaque = [@opaque, rank].min unless path
            @ranks[path || entry] ||= rank
            @paths << path
          end
          @usable = true
        end

        # TruffleRuby works the paths out anyway, to tell what is loaded.
        def expanded_by_runtime
          RUBY_ENGINE == "truffleruby" ? ::Truffle::FeatureLoader.get_expanded_load_path : []
        rescue NameError
          []
        end

        # The path of an entry of the load path; nil if only the runtime knows what it means.
        def directory(entry, expanded)
          return if entry.start_with?("~") || entry.include?(":") || entry.include?("!") || !entry.ascii_only?

          @working_directory = Dir.pwd unless entry.start_with?("/")
          return expanded if expanded

          # Expanding takes the JVMs long, and most entries are as they should be.
          path = entry.match?(UNUSUAL) ? File.expand_path(entry) : entry.dup
          RUBY_ENGINE == "jruby" ? path : real(path)
        end

        # CRuby looks through links here, JRuby does not.
        def real(path)
          File.realpath(path)
        rescue SystemCallError
          path
        end

        # Looks at all directories once more. Whether something has changed.
        def look_again
          before = @below
          @below = before.to_h { |path, _| [path, @directories.look(path)] }
          changed = look_at(@ranks.keys)
          changed || before.any? { |path, listing| !listing.equal?(@below[path]) }
        end

        # Looks at these directories. Whether something is new.
        def look_at(paths)
          changed = paths.reject do |path|
            before = @listings[path]
            (@listings[path] = @directories.look(path)).equal?(before)
          end
          index(changed)
          closed = @ranks.select { |path, _| @listings[path].equal?(Directories::CLOSED) }
          @opaque = [@opaque, *closed.values].min
          @look_again_at = now + (PAUSE * @ranks.size)
          changed.any?
        end

        def index(changed)
          return if changed.empty?

          if changed.any? { |path| @indexed&.key?(path) }
            @holders.clear
            changed = @listings.keys
          end
          (@indexed ||= {}).update(changed.to_h { |path| [path, true] })
          changed.each do |path|
            @listings[path].names.split("/").each { |name| (@holders[name] ||= []) << path unless name.empty? }
          end
        end

        def now
          Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end
      end
    end
  end
end

# frozen_string_literal: true

module Snapboot
  module Archive
    module Pure
      # Finds the file of a feature without searching each directory of the load path.
      #
      # It answers only if it is sure; otherwise the runtime searches. Directories are checked again when a name is not
      # found, and from time to time, so that checks take at most a fiftieth of the elapsed time.
      class LoadPath
        # Names of files below the load path, without superfluous parts. The pattern is simple, because TruffleRuby takes 0.1
        # s for the first match of a complex one. The runtime treats other names, and those with the extensions below, in its
        # own way.
        USUAL = %r{\A[\w+-][\w.+-]*(?:/[\w+-][\w.+-]*)*\z}
        UNUSUAL = %r{\A[^/]|/\.|//|/\z}
        NATIVE = %w[.so .o .dll .bundle .jar .class].freeze
        # Seconds between two checks of a directory: fifty times the duration of one, which is slow on the JVMs.
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

        # Returns the path of the file that `require name` would load, if it is not loaded yet; :missing if there is none,
        # nil if the runtime must be asked.
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

        # Returns the path of the file; false if the runtime must be asked, nil if there is none.
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

        # Returns the rank of the first directory of the load path with this file in that folder below it; nil if none has
        # it.
        def first_with(folder, file)
          return rank(@holders[file]) if folder.empty?

          holders = @holders[folder.partition("/").first] or return
          rank(holders.select { |path| names_below(path, folder)&.include?("/#{file}/") })
        end

        def rank(directories)
          directories&.map { |path| @ranks[path] }&.compact&.min
        end

        # Returns the names in `folder` below a directory; nil if there is no such folder.
        def names_below(directory, folder)
          path = "#{directory}/#{folder}"
          above, slash, last = folder.rpartition("/")
          listed = @below[path]
          return unless listed || slash.empty? || names_below(directory, above)&.include?("/#{last}/")

          listed ||= @below[path] = @directories.look(path)
          @is_unsure ||= listed.equal?(Directories::CLOSED)
          listed.names
        end

        # Whether everything that can be found is in directories that are listed here.
        def sees_all?
          @opaque == @seen.size
        end

        # Notices changes of the load path, and checks directories if it is time.
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

        # Computes the directories of the current load path.
        def expand
          @usable = false # until the end: some elements cannot be compared with anything
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

        # TruffleRuby computes the paths anyway, to find out which features are loaded.
        def expanded_by_runtime
          RUBY_ENGINE == "truffleruby" ? ::Truffle::FeatureLoader.get_expanded_load_path : []
        rescue NameError
          []
        end

        # Returns the path of an entry of the load path; nil if only the runtime knows its meaning.
        def directory(entry, expanded)
          return if entry.start_with?("~") || entry.include?(":") || entry.include?("!") || !entry.ascii_only?

          @working_directory = Dir.pwd unless entry.start_with?("/")
          return expanded if expanded

          # Expanding is slow on the JVMs, and most entries need none.
          path = entry.match?(UNUSUAL) ? File.expand_path(entry) : entry.dup
          RUBY_ENGINE == "jruby" ? path : real(path)
        end

        # CRuby resolves links here, JRuby does not.
        def real(path)
          File.realpath(path)
        rescue SystemCallError
          path
        end

        # Checks all directories again. Returns whether something has changed.
        def look_again
          before = @below
          @below = before.to_h { |path, _| [path, @directories.look(path)] }
          changed = look_at(@ranks.keys)
          changed || before.any? { |path, listing| !listing.equal?(@below[path]) }
        end

        # Checks these directories. Returns whether something is new.
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

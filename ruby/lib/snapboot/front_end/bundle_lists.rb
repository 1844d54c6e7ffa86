# frozen_string_literal: true

# Records which gems Bundler looks up while the program boots. Bundler lets RubyGems list all installed gems, puts them into
# an index, and looks there for the gems of the lock file; nothing else counts. It keeps the index, in which it will look for
# the rest of the lock file (gems of groups that were not set up). From then on RubyGems has only the gems of the bundle. If
# the index belongs to an unfamiliar version of Bundler, it is not watched, and all gems count.
class BundleLists
  INDEX = "Bundler::Index"
  SOURCE = "Bundler::Source::Rubygems"
  BY_NAME = %i[local_search search_all].freeze
  OF_ALL = %i[each spec_names size inspect].freeze
  # These go through another index to merge it.
  COPYING = %i[use merge! initialize_copy].freeze
  # These call the others, or add to the index.
  REST = %i[<< == [] add add_source all_specs dependencies_eql? dependency_names duplicates empty? search sort_specs sources
            specs subset? unmet_dependency_names unsorted_search].freeze

  # +lists+ receives the names that count; +wrappers+ watch.
  def initialize(lists, wrappers)
    @lists = lists
    @wrappers = wrappers
    # The folders of each index of installed gems.
    @indexes = {}.compare_by_identity
    @watched = {}
  end

  # Starts recording, at once or when Bundler is loaded.
  def watch
    [INDEX, SOURCE].each { |name| watch_class(Object.const_get(name)) if loaded?(name) }
    name_of = Module.instance_method(:name)
    @trace = TracePoint.new(:end) do |event|
      watch_class(event.self) if event.path.include?("/bundler/") && [INDEX, SOURCE].include?(name_of.bind_call(event.self))
    end
    @trace.enable
  end

  # Stops recording, and reports what may be looked up later.
  def finish
    @trace.disable
    return if @indexes.empty?

    names = ObjectSpace.each_object(Bundler::Definition).flat_map { |definition| definition.locked_gems&.specs.to_a }
    names.each { |spec| @indexes.each_value { |folders| add(spec, folders) } }
  end

  private

  def loaded?(name)
    name.split("::").inject(Object) do |scope, part|
      scope.const_defined?(part) && !scope.autoload?(part) ? scope.const_get(part) : break
    end
  end

  def watch_class(loaded)
    name = loaded.to_s
    return if @watched[name]

    @watched[name] = true
    name == INDEX ? watch_index(loaded) : watch_source(loaded)
  end

  def watch_source(source)
    @wrappers.wrap(source, :installed_specs) do |_, original|
      next original.call unless knows_index?

      folders = @lists.directories
      index = @lists.reading_all { original.call }
      @indexes[index] ||= folders
      index
    end
  end

  # Naming the index makes Bundler load it.
  def knows_index?
    Bundler::Index && @knows_index
  end

  def watch_index(index)
    methods = index.public_instance_methods(false) + index.protected_instance_methods(false)
    return unless (methods - BY_NAME - OF_ALL - COPYING - REST).empty?

    @knows_index = true
    (BY_NAME & methods).each { |name| watch_search(index, name) }
    (OF_ALL & methods).each { |name| watch_whole(index, name) }
    (COPYING & (methods + index.private_instance_methods(false))).each { |name| watch_copy(index, name) }
  end

  def watch_search(index, name)
    @wrappers.wrap(index, name) do |receiver, original, arguments, block|
      folders = @indexes[receiver]
      add(arguments.first, folders) if folders
      original.call(*arguments, &block)
    end
  end

  def watch_whole(index, name)
    @wrappers.wrap(index, name) do |receiver, original, arguments, block|
      folders = @indexes[receiver]
      @lists.add(GemLists::ALL, folders) if folders && !receiver.equal?(@copied)
      original.call(*arguments, &block)
    end
  end

  def watch_copy(index, name)
    @wrappers.wrap(index, name) do |receiver, original, arguments, block|
      @indexes[receiver] ||= @indexes[arguments.first] if @indexes[arguments.first]
      @copied = arguments.first
      original.call(*arguments, &block)
    ensure
      @copied = nil
    end
  end

  # +wanted+: a name, a name and a version, or an object that has both.
  def add(wanted, folders)
    name, version = wanted.respond_to?(:version) ? [wanted.name, wanted.version] : wanted
    name = name.name if name.respond_to?(:name)
    return @lists.add("#{name}-#{GemLists::ALL}", folders) unless version.is_a?(Gem::Version)

    # Of any platform, or of one.
    @lists.add("#{name}-#{version}.gemspec", folders)
    @lists.add("#{name}-#{version}-#{GemLists::ALL}", folders)
  end
end

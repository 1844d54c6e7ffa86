# frozen_string_literal: true

# The directories of RUBYLIB in $LOAD_PATH and in Ruby's own copy of it. A start with another value than the boot's gets
# its own directories there, where Ruby would have put them.
#
# A boot as another start (evidence.rb) has two made-up directories in RUBYLIB. It shows whether they have other
# consequences, and writes their position after the boot to the file `place` of the control directory. The launcher
# compares the look-ups in them (crates/inputs facts/searched.rs).
class SearchPath
  NAME = "RUBYLIB"
  GET = ENV.method(:[])
  # This feature is always there: looking for it makes Ruby notice a changed $LOAD_PATH.
  ALWAYS = "thread"
  # A library that Ruby loads at its start keeps this copy for suggestions after a LoadError.
  COPY = %i[DidYouMean RequirePathChecker INITIAL_LOAD_PATH].freeze
  private_constant :NAME, :GET, :ALWAYS, :COPY

  # Create this before the program can change anything.
  def initialize(request)
    @file = "#{request.directory}/place"
    @tells = request.value("evidence") == "other"
    @value = now
    names = names_in(@value)
    first = (0..$LOAD_PATH.size - names.size).find { |index| $LOAD_PATH[index, names.size] == names }
    @known = !first.nil? && names.uniq.size == names.size
    @own = @known ? $LOAD_PATH[first, names.size] : []
    @others = $LOAD_PATH - @own
  end

  # Records where they stand, and reports what the image depends on instead of the variable. Call right before the
  # freeze.
  def settle(report)
    @lists = [$LOAD_PATH, copy].compact
    # Code that removes entries may have removed some that only this start had.
    @known &&= (@others - $LOAD_PATH).empty?
    find if @known
    report.add_record("held", NAME, "$LOAD_PATH") unless @known
    $LOAD_PATH.drop(@places.first).each { |entry| report.add("search_path", entry) } if @places
  end

  # Removes them from $LOAD_PATH, in a process that is compared with others and not frozen.
  def take_out
    exchange(@own, []) if @places
    require ALWAYS
  end

  # Inserts those of this start. Yields the reason if that is impossible. Call before the program's changes are applied
  # to the environment. +evidence+: knows whether the program has read the current directory.
  def renew(evidence)
    value = now
    return if value == @value
    return yield "stale: RUBYLIB has another value" unless @places

    names = names_in(value)
    exchange(@own, [])
    return yield "stale: a directory of RUBYLIB is in $LOAD_PATH already" if names.intersect?($LOAD_PATH) || names.uniq!

    folder = evidence.folder_if_read
    related = "stale: a directory of RUBYLIB leads to the current directory, which the program has read"
    return yield related if folder && names.any? { |name| related?(name, folder) }

    exchange([], names.each(&:freeze))
  end

  private

  # Returns the value of the variable, or nil.
  def now
    value = GET.call(NAME)
    value unless value.nil? || value.empty?
  end

  def names_in(value)
    value.to_s.split(":", -1)
  end

  def copy
    list = COPY.reduce(Object) { |owner, name| owner.const_get(name, false) }
    list if list.instance_of?(Array)
  rescue NameError
    nil
  end

  # Finds where they stand in this boot, or stood in a boot as another start, which has written it down.
  def find
    told = Marshal.load(File.binread(@file)) if !@tells && File.exist?(@file) # rubocop:disable Security/MarshalLoad
    @places = @own.empty? ? told : @lists.map { |list| place_in(list) }
    @known = @places.nil? || (@places.all? && @places.size == @lists.size && (told.nil? || @places == told))
    return @places = nil unless @known

    File.binwrite(@file, Marshal.dump(@places)) if @tells && @places
  end

  # Whether two absolute paths are the same, or one lies below the other.
  def related?(one, other)
    paths = [one, other].map { |path| "#{path.chomp("/")}/" }
    paths[0].start_with?(paths[1]) || paths[1].start_with?(paths[0])
  end

  def place_in(list)
    place = list.index { |entry| entry.equal?(@own.first) }
    place if place && list[place, @own.size].zip(@own).all? { |entry, own| entry.equal?(own) }
  end

  def exchange(before, names)
    @lists.zip(@places) do |list, place|
      was_frozen = list.frozen?
      ObjectHeader.thaw(list) if was_frozen
      list[place, before.size] = names
      list.freeze if was_frozen
    end
  end
end

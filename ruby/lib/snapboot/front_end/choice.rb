# frozen_string_literal: true

# A recipe for a library that chooses by its terminal, while one of its files is loaded, whether it uses colours. It chooses
# again after each thaw, unless the program has chosen for itself by then.
#
# The value does not show whether the library or the program has chosen it. So from the first read of the terminal on, this
# watches who sets the value and who reads it. A program that reads the value depends on the terminal.
class Choice
  include Recipes::Defaults

  # What such a file may mention of the terminal in the lines that choose, and nowhere else.
  TERMINAL = /\b(?:tty\?|isatty\b|winsize\b)/
  # Methods besides the accessors by which a program can read or set the value.
  TAKERS = %i[instance_variable_get dup clone].freeze
  SETTERS = %i[instance_variable_set].freeze

  # What is known of a library. +file+: the end of the path of the one that chooses. +forms+: its lines that do, as different
  # versions have them. +through+: ends of the paths of those that only pass the value on. +variables+: which it looks at.
  # +streams+: the numbers of those that it looks at. +takers+, +setter+: names of methods. +constants+: the pattern of the
  # lines that make a constant of it, or nil; see ChosenConstants.
  Source = Struct.new(:file, :forms, :through, :variables, :streams, :takers, :setter, :constants, keyword_init: true)

  # +holder+: answers who has the value. +chosen+: makes the choice, from the value before.
  def initialize(source, holder, chosen)
    @source = source
    @find = holder
    @chosen = chosen
    @places = [source.file, *source.through]
    @constants = ChosenConstants.new(source.constants) if source.constants
  end

  def applies?
    !@holder.nil? && !@lost && @holder.equal?(@find.call)
  end

  def renews?(what, reader)
    !@lost && reader.end_with?(@source.file) && (what == "terminal" || @source.variables.include?(what))
  end

  # The choice begins, if that is where it is made.
  def reading(what, reader, reads)
    return unless renews?(what, reader)
    return @lost ||= @by_program || reader != @file if @holder

    @file = reader
    @holder = @find.call if known_form?
    return @lost = true unless @holder

    # The value before it is the program's, if it has given one.
    @before = @of_boot = value
    watch(reads)
  end

  def before_freeze
    @use.call unless @constants.nil? || @constants.find
    @use = nil
  end

  def after_thaw
    chosen = @chosen.call(@before)
    return if chosen == @of_boot

    of_program = value if @by_program
    give(chosen)
    @constants&.make
    give(of_program) if @by_program
  end

  private

  def known_form?
    lines = File.readlines(@file, mode: "rb").map(&:strip).each.with_index(1).reject { |line, _| line.start_with?("#") }
    lines = lines.select { |line, _| line.match?(TERMINAL) || @source.variables.any? { |name| line.include?(name) } }
    @numbers = lines.map(&:last)
    @source.forms.include?(lines.map { |line, _| line.tr("'", '"') })
  rescue SystemCallError
    false
  end

  def value
    @holder.public_send(@source.takers.first)
  end

  def give(value)
    @holder.public_send(@source.setter, value)
  end

  def watch(reads)
    @use = -> { reads.taken(@source.streams, @source.variables, reads.place_beyond(@places) || "#{@file}:1") }
    (@source.takers + TAKERS).each { |name| reads.watch_method(@holder, name) { take(reads) unless @by_program } }
    [@source.setter, *SETTERS].each { |name| reads.watch_method(@holder, name) { |values| set(values.last, reads) } }
  end

  def take(reads)
    use = @use
    use.call unless @constants&.take(reads.frame_beyond(@places), &use)
  end

  def set(value, reads)
    frame = reads.frame_beyond(@source.through)
    is_own = frame && frame.absolute_path == @file && @numbers.include?(frame.lineno)
    return @of_boot = value if is_own && !@by_program

    @by_program = true
    reads.chosen(reads.place_beyond(@places) || "#{@file}:1")
  end
end

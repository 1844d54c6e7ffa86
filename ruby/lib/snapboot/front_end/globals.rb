# frozen_string_literal: true

# Finds global variables that features set or read while they are loaded.
#
# Loaded early, such a feature does not see what the program has set before, and the program may overwrite what the feature
# sets. So it is left to the program if other code names the variable: the main part, a file that it has run, or a feature
# that is not loaded together with this one. The names are taken from the whole text, since code may be in a string.
class Globals
  NAME = /\$[a-zA-Z_\x80-\xff][\w\x80-\xff]*/n
  # Variables that ProcessState and Early handle, or that nobody can set; and their names in Ruby's feature English.
  OWN = %i[
    $_ $DEBUG $FILENAME $KCODE $LOADED_FEATURES $LOAD_PATH $PROGRAM_NAME $SAFE $VERBOSE $stderr $stdin $stdout
    $ARGV $CHILD_STATUS $DEFAULT_INPUT $DEFAULT_OUTPUT $ERROR_INFO $ERROR_POSITION $FIELD_SEPARATOR $FS $IGNORECASE
    $INPUT_LINE_NUMBER $INPUT_RECORD_SEPARATOR $LAST_MATCH_INFO $LAST_PAREN_MATCH $LAST_READ_LINE $MATCH $NR $OFS $ORS
    $OUTPUT_FIELD_SEPARATOR $OUTPUT_RECORD_SEPARATOR $PID $POSTMATCH $PREMATCH $PROCESS_ID $RS
  ].freeze
  METHODS = %i[definemethod definesmethod].freeze

  # +main+: the text of the main part, or nil where it may be any. +ran+: paths of files that training runs have loaded and
  # that are no features. +from+: by path, the feature whose loading loaded that one, or "".
  def initialize(main, ran, from)
    @main = main && self.class.names(main)
    @ran = ran
    @from = from
    @names = {}
    # By path: the variables assigned while it was loaded, by any code.
    @assigned = {}
    @known = {}
  end

  # Records assignments from now on, with the feature. Call in a child: this is never undone. +loading+: paths of the
  # features that are being loaded, the innermost last.
  def watch(loading)
    @loading = loading
    look
  end

  # Finds new variables. Call before another feature is loaded, and after that.
  def look
    (global_variables - @known.keys).each do |name|
      @known[name] = true
      next if OWN.include?(name) || !NAME.match?(name.to_s.b)

      # Not at the beginning, when nothing is being loaded.
      assigned(name) unless @loading.empty? || value(name).nil?
      trace_var(name) { assigned(name) }
    end
  end

  # Returns why some of these features must be left out, by path. +left+: features that are left out anyway.
  def conflicts(paths, left)
    namers = namers_in(@from.keys | $LOADED_FEATURES | @ran)
    paths.each_with_object({}) do |path, found|
      used = used_by(path)
      name = used.find { |candidate| named_elsewhere?(candidate, namers[candidate].to_a, path, left) }
      found[path] = "uses the global variable #{name}" if name
    end
  end

  # Returns the names of variables in a text.
  def self.names(text)
    text.b.scan(NAME).uniq.map(&:to_sym) - OWN
  end

  private

  def assigned(name)
    (@assigned[@loading.last] ||= []) << name unless @loading.empty?
  end

  def value(name)
    eval(name.to_s, TOPLEVEL_BINDING, __FILE__, __LINE__) # rubocop:disable Security/Eval
  end

  # Returns the features that have the name in their text, by name.
  def namers_in(paths)
    paths.each_with_object({}) do |path, found|
      names_in(path).each { |name| (found[name] ||= []) << path }
    end
  end

  def names_in(path)
    @names[path] ||= path.end_with?(".so") ? [] : self.class.names(File.binread(path))
  rescue SystemCallError
    @names[path] = []
  end

  # Whether code names it that is not loaded together with that feature.
  def named_elsewhere?(name, namers, path, left)
    return true if @main.nil? || @main.include?(name)

    whole = outermost(path, left)
    namers.any? { |other| outermost(other, left) != whole }
  end

  # Returns the first in the chain of features that load one another down to this one.
  def outermost(path, left)
    loop do
      loader = @from[path].to_s
      return path if loader.empty? || left.key?(loader)

      path = loader
    end
  end

  # Returns the variables that it has set or read while it was loaded, as far as that can be seen.
  def used_by(path)
    named = names_in(path)
    assigned = @assigned.fetch(path, [])
    return assigned if named.empty?

    (used_in(compiled(path)) & named) | assigned
  end

  def compiled(path)
    verbose = $VERBOSE
    $VERBOSE = nil
    RubyVM::InstructionSequence.compile_file(path).to_a
  ensure
    $VERBOSE = verbose
  end

  # Returns the symbols that code has outside of methods, names of variables among them.
  def used_in(code, used = [])
    code.each do |part|
      case part
      when Symbol then used << part
      when Array then used_in(part, used) unless METHODS.include?(part.first)
      end
    end
    used
  end
end

# frozen_string_literal: true

# Another start as evidence: what of this process depends on facts about its start, such as HOME, and how a thaw renews
# it.
#
# If a program has read such facts, `snapboot freeze` boots it once more with other values (crates/freeze
# programs/other_start.rs), and then again with the first ones. Each boot compares all objects that it holds in a child
# (start_comparison.rb). A thaw makes strings anew that only hold a fact.
class Evidence
  CWD = :cwd
  FAILED = "its objects cannot be compared"
  # Processor time that a walk over the objects may take: so many seconds, or so many times what the boot took, if that is
  # more. On a slow machine both take long.
  LONGEST = 4
  PATIENCE = 4
  GET = ENV.method(:[])
  SIZE = String.instance_method(:bytesize)
  private_constant :CWD, :FAILED, :LONGEST, :PATIENCE, :GET, :SIZE

  # Names of facts with their values in the image, and the values in this boot.
  attr_reader :facts, :here
  # The purpose of this boot among those that are compared: see protocol.md.
  attr_reader :role
  # The number of the form that the values of another start have (form_comparison.rb), or nil.
  attr_reader :form_number
  # Names of private constants by module: later, nothing can tell that they were private.
  attr_reader :private_constants
  # The program's exit handlers, in the order in which they were registered.
  attr_reader :exit_handlers

  # Create this before the program can change anything.
  def initialize(request)
    @directory = request.directory
    @role = request.value("evidence")
    @most_files = request.value("most_files").to_i
    @form_number = request.value("form")
    @watches_values = !request.value("watches_values").nil?
    @facts = request.list("fact").to_h { |fact| fact.b.split("=", 2).then { |name, value| [name.to_sym, value] } }
    @here = now(@facts.keys)
    @form = StartForm.new(@facts)
    @read = []
    @texts = RenewedTexts.new
    @exit_handlers = []
    @private_constants = Hash.new { |all, owner| all[owner] = [] }.compare_by_identity
    @wrappers = Wrappers.new
  end

  # Returns the WatchedValues of a boot that records comparisons only, or nil. Call before reads are watched.
  # +load_file+: loads a file of the front end by its name. +own+: the front end's directory.
  def watched_values(load_file, own)
    return unless @watches_values

    load_file.call("watched_values")
    WatchedValues.new(@here, own)
  end

  # Starts recording what cannot be found afterwards. +values+: the WatchedValues of a boot that records only these, or
  # nil.
  def watch(values)
    return if @role.nil?

    @wrappers.wrap(Module, :private_constant) do |owner, original, names|
      original.call(*names).tap { @private_constants[owner].concat(names.map(&:to_sym)) }
    end
    @values = values&.tap(&:watch)
    [Kernel, Kernel.singleton_class].each do |owner|
      @wrappers.wrap(owner, :at_exit) { |_, original, _, block| original.call(&block).tap { @exit_handlers << block } }
    end
  end

  # Removes the hooks.
  def stop
    @values&.stop
    @wrappers.take_off
  end

  # Whether this is a boot as another start, which is not frozen.
  def other?
    @role == "other"
  end

  # Returns the features of the values of this boot: see StartForm#features.
  def features
    @form.features(@here)
  end

  # Returns the pieces of a template: names of facts, and Strings.
  def pieces_of(template)
    names = @facts.keys
    template.split(",").map { |piece| piece.start_with?("x") ? [piece[1..]].pack("H*") : names[piece.to_i] }
  end

  # Finds what a thaw makes anew, and reports the differences. +asked+: whether the program has read the current
  # directory, and its terminal. +secrets+: the SecretValues, or nil. The block walks the objects of this process, in a
  # child.
  def settle(asked, secrets, report, &look)
    return if @role.nil?
    return @values.found.each { |name, what| report.add_record("value_compared", name, what) } if @values

    read = read_facts(asked[:folder])
    return if @role == "first" && ((read.empty? && !asked[:terminal]) || $LOADED_FEATURES.size > @most_files)

    GC.start
    # If the walk takes longer, the program is not booted several times more.
    is_done = InChild.run(@role == "first" ? longest : nil, &look)
    return (report.add("evidence", "1") if is_done) if @role == "first"
    return report.add("differs", FAILED) unless is_done

    @read = read
    take(found(report), secrets, report)
  ensure
    @private_constants = @exit_handlers = @wrappers = nil
    GC.start
  end

  # Puts the facts of this start in place. Yields the reason if that is impossible. Call before the program's changes
  # are applied to the environment.
  def renew
    names = @read | @texts.open_pieces
    return if names.empty?

    values = now(names)
    return @texts.keep if values.all? { |name, value| value == @facts[name] }

    refusal = @form.refusal(values)
    yield refusal if refusal
    @texts.exchange(values)
    @texts.finish
  rescue SystemCallError
    yield "the current directory, which the program has read, is gone"
  end

  # Returns the current directory if the program has read it, else nil.
  def folder_if_read
    Dir.pwd if @read.include?(CWD)
  end

  private

  def longest
    [LONGEST, (PATIENCE * Process.times.then { |times| times.utime + times.stime }).to_i].max
  end

  def now(names)
    names.to_h { |name| [name, name == CWD ? Dir.pwd.b : (GET.call(name.name) || (home_of_user if name == :HOME))&.b] }
  end

  # Returns the directory that replaces an unset HOME; nil if it is unknown.
  def home_of_user
    Dir.home
  rescue ArgumentError
    nil
  end

  # Returns the facts that were read and that another start can vary, including reads of RubyGems when Ruby started.
  def read_facts(reads_folder)
    read = File.binread("#{@directory}/noted").split("\0").filter_map do |entry|
      kind, phase, subject = Channel.fields(entry.split("=", 2).last)
      subject if kind == Channel::VARIABLE && phase != Channel::OF_FRONT_END # which reads all of them
    end
    @facts.keys.select { |name| name == CWD ? reads_folder : read.include?(name.to_s) }
  rescue SystemCallError
    reads_folder ? [CWD] : []
  end

  # Reports what the child found. Returns the strings that are made anew: address, pieces and path.
  def found(report)
    entries = File.binread("#{@directory}/found").split("\0").map { |entry| entry.split("=", 2) }
    tried, entries = entries.partition { |key, _| key == "tried" }
    @form.add_tried(tried.map(&:last))
    renewed, told = entries.partition { |key, _| key == "renew" }
    told.each { |key, value| report.add(key, value) }
    renewed.to_h do |_, value|
      address, template, path = value.split(" ", 3)
      [address, [pieces_of(template), path]]
    end
  end

  def take(wanted, secrets, report)
    return if wanted.empty?

    strings = strings_at(wanted)
    wanted.each do |address, (pieces, path)|
      text = strings[address]
      is_kept = text && !searched?(text) && !secrets&.keep?(text) && renewable_now?(pieces) && @texts.add(text, pieces)
      hold(pieces, path, report) unless is_kept
    end
    @texts.find_hashes.each { |key| hold(*wanted[RenewedTexts.address(key)], report) }
  end

  # Finds strings by their addresses. All exist, since the child was a copy of this process.
  def strings_at(wanted)
    sizes = wanted.to_h { |_, (pieces, _)| [pieces.sum { |it| it.is_a?(Symbol) ? @facts[it].bytesize : it.bytesize }, true] }
    found = []
    ObjectSpace.each_object(String) { |text| found << text if sizes.key?(SIZE.bind_call(text)) }
    found.to_h { |text| [RenewedTexts.address(text), text] }
  end

  # Whether Ruby searches this path: it finds files by copies of it.
  def searched?(text)
    [$LOAD_PATH, $LOADED_FEATURES].any? { |list| list.any? { |it| it.equal?(text) } }
  end

  def renewable_now?(pieces)
    pieces.grep(Symbol).all? { |name| @facts[name].ascii_only? }
  end

  # Reports that a string contains a fact and cannot be replaced.
  def hold(pieces, path, report)
    pieces.grep(Symbol).uniq.each { |name| report.add_record("held", name, path) }
  end
end

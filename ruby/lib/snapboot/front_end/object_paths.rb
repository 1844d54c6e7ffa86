# frozen_string_literal: true

# Everything that a process holds, as pairs of a path and a value: `App::Settings@colors[2]`, and the value there.
#
# The walk goes down from the constants of Object and the global variables, by name and breadth first, so that two boots of a
# program give the same paths if they hold the same; then from the other roots of the garbage collector. It leaves out what
# only the machine's stack leads to: no code of the program runs at the freeze point. It runs in a process that is not
# frozen, since it leaves many objects behind, and it calls no method that a program may have defined for its own classes.
class ObjectPaths
  # The beginning of paths of objects that no module leads to.
  ROOT = "(Ruby)"
  # A longer path is replaced by its digest.
  LONGEST = 300
  # Larger numbers are addresses, which differ in each boot.
  LARGE = 1 << 31
  # Entries of the queue between two collections, each of which takes longer than many entries.
  COLLECTED = 100_000
  # Kinds of objects for which the collector is not asked, such as a class of their own with methods.
  PLAIN = %i[regexp array table members range method_object exception queue closure].freeze
  OWN = Kernel.instance_method(:singleton_methods)
  # Variables that differ in each start.
  PER_START = %i[$$ $0 $* $. $_ $~ $! $@ $& $` $' $+ $? $< $> $stdin $stdout $stderr $FILENAME $PROGRAM_NAME $DEBUG $VERBOSE
                 $-d $-v $-w $-W $-i $-l $-p $-a].freeze
  # A method returns the value of these.
  LEAVES = {
    NilClass => :inspect, TrueClass => :inspect, FalseClass => :inspect, Integer => :inspect, Float => :inspect,
    Rational => :inspect, Complex => :inspect, Symbol => :name, Encoding => :to_s
  }.to_h { |type, name| [type, type.instance_method(name)] }.compare_by_identity.freeze
  # C objects without references, and the methods that show their state.
  STATES = {
    "Time" => :inspect, "Date" => :ajd, "BigDecimal" => :to_s, "StringScanner" => :pos, "StringIO" => :pos,
    "Thread::Mutex" => :locked?, "Process::Status" => :to_i, "Thread::SizedQueue" => :max, "TracePoint" => :enabled?,
    "Digest::Base" => :hexdigest, "OpenSSL::Digest" => :hexdigest, "OpenSSL::HMAC" => :hexdigest,
    "Random" => :marshal_dump, "ObjectSpace::WeakMap" => :size
  }.freeze
  KINDS = {
    String => :string, Regexp => :regexp, Array => :array, Hash => :table, Module => :namespace, Proc => :closure,
    IO => :stream, Binding => :variables, Struct => :members, Range => :range, Method => :method_object,
    UnboundMethod => :method_object, Thread => :thread, Exception => :exception, Queue => :queue,
    **(defined?(Data.define) ? { Data => :members } : {})
  }.freeze
  # Details of exceptions that no name leads to.
  DETAILS = {
    SystemExit => :status, SignalException => :signo, KeyError => :key, NameError => :name, StopIteration => :result,
    LocalJumpError => :reason, UncaughtThrowError => :value, SystemCallError => :errno
  }.map { |type, name| [type, type.instance_method(name)] }.freeze
  METHODS = %i[public protected private].map { |kind| Module.instance_method("#{kind}_instance_methods") }
  SAME = BasicObject.instance_method(:equal?)
  CLASS, SINGLETON, IVARS, IVAR = %i[class singleton_class instance_variables instance_variable_get].map do |name|
    Kernel.instance_method(name)
  end
  NAME, BELOW, ANCESTORS, CONSTANTS, CONSTANT, AUTOLOAD, CVARS, CVAR, METHOD =
    %i[name <= ancestors constants const_get autoload? class_variables class_variable_get instance_method].map do |name|
      Module.instance_method(name)
    end
  FROZEN = Kernel.instance_method(:frozen?)
  BYTES, ENCODING = %i[b encoding].map { |name| String.instance_method(name) }
  ALL, EACH, INSPECT = %i[all? each inspect].map { |name| Array.instance_method(name) }
  EACH_PAIR, DEFAULT, DEFAULT_PROC, BY_IDENTITY =
    %i[each_pair default default_proc compare_by_identity?].map { |name| Hash.instance_method(name) }
  REGEXP = %i[options encoding source].map { |name| Regexp.instance_method(name) }

  # +front_end+: its anonymous module. +directory+: the folder of its files. +roots+: more starting points, by name.
  # +private_constants+: names by module. +renewed+: objects that a thaw fills anyway. +secrets+: the SecretValues, or nil.
  def initialize(front_end, directory, roots, private_constants, renewed, secrets = nil)
    require "digest"
    require "objspace"
    @front_end = front_end
    @own_names = "#{front_end.inspect}::"
    @directory = directory
    @roots = roots
    @secrets = secrets
    @code = ObjectCode.new
    @below_keys = BelowKeys.new
    @seen = {}.compare_by_identity
    @private_constants = private_constants
    @skipped = [self, private_constants, @code, @below_keys, *renewed].to_h { |object| [object, true] }.compare_by_identity
    @kinds = { ObjectSpace::InternalObjectWrapper => :internal }.compare_by_identity
    @states = {}.compare_by_identity
    @queue = []
    @namespaces = []
    @nameless = Hash.new(0)
  end

  # The objects below keys of Hashes.
  attr_reader :below_keys

  # Yields path, content and object of each value, all but the object as bytes. +translate+: takes the bytes of a string, and
  # returns their counterpart in the boot that this one is compared with, or nil if they are the same. +holds+: whether bytes
  # hold a fact.
  def each(translate, holds, &block)
    @translate = translate
    @holds = holds
    verbose = $VERBOSE
    $VERBOSE = nil # constants may be deprecated
    @block = block
    GC.disable
    push(Object, "(all)")
    names = (global_variables - PER_START).grep_v(/\A\$\d/).sort
    names.each { |name| push(eval(name.to_s), name.to_s) } # rubocop:disable Security/Eval
    push(TOPLEVEL_BINDING, "main")
    @roots.each { |name, object| push(object, name) }
    drain
    @namespaces.each_slice(2) { |object, path| unordered(ObjectSpace.reachable_objects_from(object), path) }
    drain
    @skipped[@namespaces] = @skipped[@nameless] = @skipped[@queue] = @skipped[@seen] = @skipped[@kinds] = true
    ObjectSpace.reachable_objects_from_root.each do |root, objects|
      roots(objects, ROOT) unless root == "machine_context"
    end
    drain
    patterns
  ensure
    $VERBOSE = verbose
  end

  # Returns a short text that identifies a value.
  def self.digest(content)
    Digest::MD5.hexdigest(content)[0, 16]
  end

  private

  def push(object, path)
    @queue << object << path
  end

  def drain
    at = 0
    while at < @queue.size
      visit(@queue[at], @queue[at + 1])
      at += 2
      collect if (at % COLLECTED).zero?
    end
    @queue.clear
  end

  def collect
    GC.enable
    GC.start
    GC.disable
  end

  def visit(object, path)
    type = CLASS.bind_call(object)
    return @block.call(path, leaf(object, type), object) if LEAVES.key?(type)

    kind = @kinds[type] ||= kind_of(type, path)
    return if kind == :front_end || @skipped.key?(object)

    known = @seen[object]
    return string(object, path, type, known) if kind == :string

    place = known || (kind == :namespace && name_of(object)) || path
    @block.call(path, "is #{place}".b, object) if path && (known || kind == :namespace)
    return if known

    @seen[object] = place
    own_class(object, path) if PLAIN.include?(kind)
    __send__(kind, object, place.bytesize > LONGEST ? "(#{ObjectPaths.digest(place)})" : place, type)
  end

  def own_class(object, path)
    push(SINGLETON.bind_call(object), "#{path}.singleton_class") unless OWN.bind_call(object).empty?
  end

  def leaf(object, type)
    "#{type}:#{LEAVES[type].bind_call(object).b}".b
  end

  # +path+: of the first object of that class.
  def kind_of(type, path)
    name = NAME.bind_call(type)
    return :front_end if name&.start_with?(@own_names)

    push(type, "#{path}.class") if name.nil?
    KINDS.find { |base, _| BELOW.bind_call(type, base) }&.last || :object
  end

  # A nameless class shows its address, and so does the name of what is in it.
  def class_name(type)
    (NAME.bind_call(type) || "a class without a name").b.gsub(/0x\h+/n, "")
  end

  def name_of(object)
    name = NAME.bind_call(object)&.b
    name unless name.nil? || name.start_with?("#<")
  end

  def string(object, path, type, known)
    @block.call(path, "#{class_name(type)} #{ENCODING.bind_call(object)}#{frozen(object)}:".b << translated(object), object)
    return unless known.nil?

    @seen[object] = path
    own_class(object, path) unless FROZEN.bind_call(object)
    ivars(object, path)
  end

  def translated(text)
    bytes = BYTES.bind_call(text)
    @translate.call(bytes) || bytes
  end

  def regexp(object, path, type)
    @block.call(path, [class_name(type), *REGEXP.map { |method| method.bind_call(object).to_s.b }].join(" "), object)
  end

  def yield_object(object, path, type, more = nil)
    @block.call(path, "a #{class_name(type)}#{frozen(object)}#{more}".b, object)
  end

  # A thaw freezes again what holds a secret.
  def frozen(object)
    ", frozen" if FROZEN.bind_call(object) || @secrets&.frozen?(object)
  end

  def ivars(object, path)
    IVARS.bind_call(object).each { |name| push(IVAR.bind_call(object, name), "#{path}#{name.name.b}") }
  end

  # Pushes what the garbage collector knows of an object besides its named parts.
  def rest(objects, path)
    counts = Hash.new(0).compare_by_identity
    objects&.each do |object|
      type = CLASS.bind_call(object)
      next if @seen.key?(object) && !String.equal?(type)
      next push(object, nil) if BELOW.bind_call(type, Module) && name_of(object) # it has a path of its own

      push(object, "#{path}<#{class_name(type)} #{counts[type] += 1}>")
    end
  end

  # Does the same for a module, which keeps its private constants in no order.
  def unordered(objects, path)
    objects&.each do |object|
      type = CLASS.bind_call(object)
      next if @seen.key?(object)
      next push(object, nil) if BELOW.bind_call(type, Module) && name_of(object)

      place = String.equal?(type) ? "#{path}<#{plain(translated(object))}>" : "#{path}<#{class_name(type)}>"
      push(object, "#{place} #{@nameless[place] += 1}")
    end
  end

  # Pushes what Ruby itself refers to. In its tables of strings only those that hold a fact count.
  def roots(objects, path)
    objects&.each do |object|
      type = CLASS.bind_call(object)
      next if LEAVES.key?(type) || @seen.key?(object) || (String.equal?(type) && !@holds.call(BYTES.bind_call(object)))

      unordered([object], path)
    end
  end

  def array(object, path, type)
    is_plain = ALL.bind_call(object) { |value| LEAVES.key?(CLASS.bind_call(value)) }
    return yield_object(object, path, type, INSPECT.bind_call(object)) if is_plain

    yield_object(object, path, type)
    index = -1
    EACH.bind_call(object) { |value| push(value, "#{path}[#{index += 1}]") }
    ivars(object, path)
  end

  def table(object, path, type)
    yield_object(object, path, type, (" by identity" if BY_IDENTITY.bind_call(object)))
    index = -1
    order = []
    EACH_PAIR.bind_call(object) do |key, value|
      index += 1
      order << (step = key(key))
      @below_keys.add(key, object) if step.nil?
      push(key, "#{path}[#{step || index}] (key)") if step.nil? || String === key # rubocop:disable Style/CaseEquality
      push(value, "#{path}[#{step || index}]")
    end
    @block.call("#{path} (order)", order.join("\n").b, object) if index.positive?
    default = DEFAULT_PROC.bind_call(object)
    push(default, "#{path}.default_proc") if default
    default = DEFAULT.bind_call(object)
    push(default, "#{path}.default") unless nil.equal?(default)
    ivars(object, path)
  end

  # Returns the path step for the key of a Hash, if its value shows it.
  def key(key)
    type = CLASS.bind_call(key)
    if String.equal?(type) then plain(translated(key).inspect)
    elsif Symbol.equal?(type) then plain(":#{key.name}")
    elsif LEAVES.key?(type) && !(Integer.equal?(type) && key.abs > LARGE) then plain(LEAVES[type].bind_call(key))
    end
  end

  def plain(text)
    text = text.b
    text.bytesize > LONGEST ? "(#{ObjectPaths.digest(text)})" : text.tr("\n\0", "  ")
  end

  def members(object, path, type)
    yield_object(object, path, type)
    base = BELOW.bind_call(type, Struct) ? Struct : Data
    base.instance_method(:to_h).bind_call(object).each { |name, value| push(value, "#{path}.#{name.name.b}") }
    ivars(object, path)
  end

  def range(object, path, type)
    yield_object(object, path, type, Range.instance_method(:exclude_end?).bind_call(object))
    %i[begin end].each { |name| push(Range.instance_method(name).bind_call(object), "#{path}.#{name}") }
  end

  def method_object(object, path, type)
    yield_object(object, path, type, " #{METHOD.bind_call(type, :name).bind_call(object)} #{@code.method(object)}")
    push(METHOD.bind_call(type, :owner).bind_call(object), "#{path}.owner")
    push(Method.instance_method(:receiver).bind_call(object), "#{path}.receiver") if Method.equal?(type)
  end

  def thread(object, path, type)
    yield_object(object, path, type, Thread.instance_method(:name).bind_call(object)&.b)
    names = %i[keys thread_variables].map { |name| Thread.instance_method(name).bind_call(object) }
    names.zip(%i[[] thread_variable_get]) do |all, get|
      all.each { |name| push(Thread.instance_method(get).bind_call(object, name), "#{path}[#{name}]") }
    end
    ivars(object, path)
  end

  def exception(object, path, type)
    object(object, path, type)
    DETAILS.each do |base, method|
      push(method.bind_call(object), "#{path}.#{method.name.name}") if BELOW.bind_call(type, base)
    rescue StandardError
      nil # it has no receiver
    end
  end

  # Pushes how a stream reads and writes. Its position is among the descriptors of ProcessRoots. Ruby's own streams are
  # renewed, except for what a program sets.
  def stream(object, path, type)
    names = object.fileno > 2 ? %i[sync lineno external_encoding internal_encoding binmode? autoclose?] : %i[sync]
    yield_object(object, path, type, names.map { |name| ask(object, name) }.join(" ").b)
  rescue IOError
    yield_object(object, path, type, "closed")
  ensure
    ivars(object, path)
  end

  def ask(stream, name)
    IO.instance_method(name).bind_call(stream)
  rescue IOError
    nil # not opened for this direction
  end

  # Empties the queue, since nothing else shows its contents.
  def queue(object, path, type)
    base = BELOW.bind_call(type, SizedQueue) ? SizedQueue : Queue
    yield_object(object, path, type, state(object, type))
    size = Queue.instance_method(:size).bind_call(object)
    size.times { |index| push(base.instance_method(:pop).bind_call(object, true), "#{path}[#{index}]") }
    ivars(object, path)
  rescue StandardError
    rest(ObjectSpace.reachable_objects_from(object), path)
  end

  def closure(object, path, type)
    place = Proc.instance_method(:source_location).bind_call(object)
    return if place&.first&.start_with?(@directory)

    yield_object(object, path, type, " #{@code.closure(object, place)}")
    ivars(object, path)
    variables(Proc.instance_method(:binding).bind_call(object), path)
  rescue ArgumentError
    rest(inside(object), path) # a closure of C code
  end

  # Returns what the collector knows of an object, and of what Ruby itself keeps for it.
  def inside(object)
    found = ObjectSpace.reachable_objects_from(object).to_a
    own = found.grep(ObjectSpace::InternalObjectWrapper).select { |it| it.type == :T_IMEMO }
    found + own.flat_map { |it| ObjectSpace.reachable_objects_from(it).to_a }
  end

  def variables(object, path, _type = nil)
    names = Binding.instance_method(:local_variables).bind_call(object)
    get = Binding.instance_method(:local_variable_get)
    names.each { |name| push(get.bind_call(object, name), "#{path}(#{name.name.b})") }
    push(Binding.instance_method(:receiver).bind_call(object), "#{path}(self)")
  end

  def object(object, path, type)
    yield_object(object, path, type, state(object, type))
    ivars(object, path)
    rest(ObjectSpace.reachable_objects_from(object)&.reject { |it| SAME.bind_call(it, type) }, path)
  end

  def state(object, type)
    @states[type] = state_of(ANCESTORS.bind_call(type)) unless @states.key?(type)
    " #{@states[type].bind_call(object)}" if @states[type]
  rescue StandardError
    nil
  end

  def state_of(ancestors)
    known = ancestors.find { |above| STATES.key?(NAME.bind_call(above)) }
    METHOD.bind_call(known, STATES[NAME.bind_call(known)]) if known
  end

  # Returns the patterns that code has made once (`/#{HOME}/o`), to which no name leads.
  def patterns
    ObjectSpace.each_object(Regexp) do |object|
      source = BYTES.bind_call(REGEXP.last.bind_call(object))
      next if @seen.key?(object) || !@holds.call(source)

      @block.call("#{ROOT}<Regexp> #{plain(@translate.call(source) || source)}", source, object)
    end
  end

  def internal(object, _path, _type)
    return unless %i[T_ARRAY T_HASH T_DATA T_OBJECT T_STRUCT].include?(object.type)

    number = object.internal_object_id
    return if (@internal ||= {}).key?(number)

    @internal[number] = true
    roots(ObjectSpace.reachable_objects_from(object), ROOT)
  end

  def namespace(object, path, _type)
    return if @front_end.equal?(object)

    ancestors = ANCESTORS.bind_call(object).map { |above| name_of(above) || "-" }
    @block.call("#{path} (ancestors)", ancestors.join(" ").b, object)
    hidden = @private_constants.fetch(object, [])
    (CONSTANTS.bind_call(object, false) | hidden).sort.each do |name|
      file = AUTOLOAD.bind_call(object, name, false)
      file ? @block.call("#{path}::#{name} (autoload)", file.b, name) : constant(object, name, path)
    end
    @block.call("#{path} (private)", hidden.uniq.sort.join(" ").b, object) unless hidden.empty?
    own(object, path)
    singleton = SINGLETON.bind_call(object)
    extended = ANCESTORS.bind_call(singleton) - ANCESTORS.bind_call(CLASS.bind_call(object))
    modules = extended.filter_map { |above| name_of(above) }
    @block.call("#{path}.singleton_class (ancestors)", modules.join(" ").b, object)
    @seen[singleton] = "#{path}.singleton_class"
    own(singleton, "#{path}.singleton_class")
    @namespaces << object << path
  end

  def constant(object, name, path)
    value = CONSTANT.bind_call(object, name, false)
    push(value, Object.equal?(object) ? name.name.b : "#{path}::#{name.name.b}")
  rescue StandardError, ScriptError
    nil # it may not be read
  end

  # Pushes variables and methods of a module.
  def own(object, path)
    IVARS.bind_call(object).each do |name|
      push(IVAR.bind_call(object, name), "#{path}#{name.name.b}") unless name == :@__snapboot__
    end
    CVARS.bind_call(object, false).each { |name| push(CVAR.bind_call(object, name), "#{path}#{name.name.b}") }
    names = METHODS.each_with_index.flat_map { |list, kind| list.bind_call(object, false).map { |name| [name, kind] } }
    texts = names.sort.map { |name, kind| "#{kind} #{own_method(object, name, path)}" }
    @block.call("#{path} (methods)", texts.join("\n").b, object) unless texts.empty?
  end

  # Pushes where a method is defined, and its closure if it is made from one.
  def own_method(object, name, path)
    method = METHOD.bind_call(object, name)
    code = RubyVM::InstructionSequence.of(method)
    rest(closures(method), "#{path}##{name.name.b}") if code&.label&.start_with?("block")
    "#{name.name.b} #{@code.method(method, code)}".b
  rescue NameError
    name.name.b
  end

  # Returns the Procs behind methods that `define_method` has made.
  def closures(method)
    inside(method).grep(Proc)
  end
end

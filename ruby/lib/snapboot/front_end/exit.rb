# frozen_string_literal: true

# Ends a thawed process without tearing down the frozen heap, which would take longer than the thaw did.
#
# The handler is registered first, so it runs last, when Ruby has only to flush and to free. If there is, or may be, more to
# do, it does nothing, and Ruby ends as always.
class Exit
  DESCRIPTORS = "/proc/self/fd"

  # The files that gem_prelude loads, of all versions: they register no exit handlers.
  ORDINARY_FEATURES =
    %r{/(?:rubygems|bundled_gems|did_you_mean|error_highlight|syntax_suggest|monitor|rbconfig|enc)[./]}
  # What a compiler tells of options with which Ruby itself prints or writes at the end.
  AT_END = %i[stats_enabled? trace_exit_locations_enabled? log_enabled?].freeze

  # Call this first of all. +own_feature+ is the front end's entry.
  def initialize(own_feature)
    # Handlers of libraries loaded earlier would run after this one.
    @possible = $LOADED_FEATURES.all? do |feature|
      !feature.start_with?("/") || feature == own_feature || feature.match?(ORDINARY_FEATURES)
    end
    @possible &&= !compiler_tells?
    @quick = false
    @more_to_do = false
    # Finalizers defined before the freeze point run at the end, too.
    watch_method(ObjectSpace.singleton_class, :define_finalizer) if @possible
  end

  # Call right before the freeze. +stream+ is the main script, which Ruby closes unless it has a DATA part; nil if that is
  # empty.
  def prepare(stream)
    return unless @possible

    @stream = stream
    writers = ObjectSpace.each_object(IO).select { |io| !io.closed? && !io.equal?(STDIN) && io != stream }
    # Ruby's own end flushes streams in the order of their addresses. The standard streams are older than all others, except
    # that another one may occupy a slot that a collection before the freeze has freed.
    standard, others = writers.partition { |io| io.equal?(STDOUT) || io.equal?(STDERR) }
    @writers = standard + others
    watch
    @quick = true
  end

  # Call after the thaw: a descriptor open now is either frozen, and known, or the caller's.
  def remember_descriptors
    return unless @quick

    @descriptors = open_descriptors
  end

  # Call at the very end. +error+: the one that led to it, if any. Returns if the ordinary end is needed.
  def leave(error)
    return if !@quick || @more_to_do

    # An error with a cause may have replaced one that Ruby must still show.
    return unless error.nil? || (error.is_a?(SystemExit) && error.cause.nil?)
    return if blocked?

    flush
    Channel.call(Channel::END_OF_PROCESS) # the freezer then flushes the C library's own streams
    exit!(error ? error.status : 0)
  rescue IOError, SystemCallError, FrozenError
    nil # Ruby handles a stream that cannot be flushed
  end

  # Runs the parts of the end that have no effect.
  def warm_up
    return unless @quick

    blocked?
    flush
  end

  # Records that the watched method was called, and where.
  def record_call(method, place)
    return if method == :define_finalizer && Recipes.harmless_finalizers?(place&.absolute_path.to_s)

    @more_to_do = true
  end

  # Makes an error of a watched method look as if there were no wrapper.
  def hide(error, owner, method)
    outside = error.backtrace.drop_while { |frame| frame.start_with?(__FILE__) }
    error.set_backtrace(["#{outside.first[/\A.*?:\d+/]}:in #{label(owner, method)}", *outside]) unless outside.empty?
  end

  private

  # A method as Ruby's backtraces show it: from 3.4 on with its class.
  def label(owner, method)
    return "`#{method}'" if RUBY_VERSION < "3.4"

    owner.singleton_class? ? "'#{owner.attached_object}.#{method}'" : "'#{owner}##{method}'"
  end

  def flush
    @writers.each { |io| io.flush unless io.closed? }
  end

  # Whether Ruby's compiler has registered a handler of its own, which would run after this one.
  def compiler_tells?
    return false unless RubyVM.const_defined?(:YJIT)

    AT_END.any? { |option| RubyVM::YJIT.respond_to?(option, true) && RubyVM::YJIT.__send__(option) }
  end

  # True if Ruby has more to do at the end than to flush.
  def blocked?
    threads_left? || Ractor.count > 1 || descriptors_opened?
  end

  # Ruby ends these threads, and waits for their `ensure` code.
  def threads_left?
    threads = Thread.list
    return false if threads.size == 1

    (threads - Recipes.threads).count { |thread| thread == Thread.current || !Recipes.may_be_cut_off?(thread) } > 1
  end

  def descriptors_opened?
    !(open_descriptors - @descriptors).empty?
  end

  # Returns the descriptors' numbers as text, without the main script's and the one that the listing itself uses.
  def open_descriptors
    Dir.open(DESCRIPTORS) do |directory|
      names = directory.children
      names.delete(directory.fileno.to_s)
      names.delete(@stream.fileno.to_s) unless @stream.nil? || @stream.closed?
      names
    end
  end

  # Records calls whose work at the end cannot be looked up later: an object made for an open descriptor, standard output for
  # example, is flushed. Finalizers run as well: see #initialize.
  def watch
    watch_method(IO.singleton_class, :for_fd)
    watch_method(IO, :initialize)
  end

  # After the first call of the method, the process ends the ordinary way.
  def watch_method(owner, name)
    watcher = self
    private = owner.private_method_defined?(name, false)
    original = owner.instance_method(name)
    owner.alias_method(name, name) # avoids Ruby's warning about a discarded method
    owner.define_method(name) do |*arguments, **keywords, &block|
      # Whether this frame is included depends on how this file is called, and on the version.
      watcher.record_call(name, caller_locations(0, 2).find { |place| place.path != __FILE__ })
      original.bind_call(self, *arguments, **keywords, &block)
    rescue StandardError => e
      watcher.hide(e, owner, name)
      raise
    end
    owner.__send__(:private, name) if private
  end
end

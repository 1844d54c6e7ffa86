# frozen_string_literal: true

# Leaves a thawed process without tearing the frozen heap down, which would cost more than the thaw did.
#
# The handler is registered first, so it runs last, when all that is left for Ruby to do is to flush and to free. Where there
# is, or might be, anything else to do it does nothing, and Ruby goes on as always.
class Exit
  DESCRIPTORS = "/proc/self/fd"

  # What gem_prelude loads: it registers no exit handlers.
  ORDINARY_FEATURES = %r{/(?:rubygems|did_you_mean|error_highlight|monitor|rbconfig|enc)[./]}

  # To be called first of all. +own_feature+ is the front end's entry.
  def initialize(own_feature)
    # Handlers of libraries loaded before would run after this one.
    @possible = $LOADED_FEATURES.all? do |feature|
      !feature.start_with?("/") || feature == own_feature || feature.match?(ORDINARY_FEATURES)
    end
    @quick = false
    @more_to_do = false
    # What was defined before the freeze point runs at the end, too.
    watch_method(ObjectSpace.singleton_class, :define_finalizer) if @possible
  end

  # To be called right before the freeze; +stream+ is the main script, which Ruby closes unless it has a DATA part;
  # nil when that is empty.
  def prepare(stream)
    return unless @possible

    @stream = stream
    writers = ObjectSpace.each_object(IO).select { |io| !io.closed? && !io.equal?(STDIN) && io != stream }
    # Ruby's own end flushes them as they lie in its memory. The standard ones are older than others, of which one may lie
    # where a collection before the freeze has freed something.
    standard, others = writers.partition { |io| io.equal?(STDOUT) || io.equal?(STDERR) }
    @writers = standard + others
    watch
    @quick = true
  end

  # To be called after the thaw: what is open now is either frozen, and known, or the caller's.
  def remember_descriptors
    return unless @quick

    @descriptors = open_descriptors
  end

  # To be called at the very end, which +error+ has led to, if any. Returns when the ordinary end is needed.
  def leave(error)
    return if !@quick || @more_to_do

    # With a cause it may have replaced an error that Ruby still has to show.
    return unless error.nil? || (error.is_a?(SystemExit) && error.cause.nil?)
    return if blocked?

    flush
    Channel.call(Channel::END_OF_PROCESS) # the freezer then writes out the C library's own streams
    exit!(error ? error.status : 0)
  rescue IOError, SystemCallError, FrozenError
    nil # a stream that cannot be flushed is Ruby's to deal with
  end

  # Does what can be done before the end without an effect.
  def warm_up
    return unless @quick

    blocked?
    flush
  end

  # The watched method was called, +place+ being where.
  def note(method, place)
    return if method == :define_finalizer && Recipes.harmless_finalizers?(place&.absolute_path.to_s)

    @more_to_do = true
  end

  # Makes an error of a watched method look as if nobody watched.
  def hide(error, method)
    outside = error.backtrace.drop_while { |frame| frame.start_with?(__FILE__) }
    error.set_backtrace(["#{outside.first[/\A.*?:\d+/]}:in `#{method}'", *outside]) unless outside.empty?
  end

  private

  def flush
    @writers.each { |io| io.flush unless io.closed? }
  end

  # True when Ruby has more to do at the end than to flush.
  def blocked?
    threads_left? || Ractor.count > 1 || descriptors_opened?
  end

  # Ruby ends them, and what they do to end properly is done.
  def threads_left?
    threads = Thread.list
    threads.size > 1 && (threads - Recipes.threads).size > 1
  end

  def descriptors_opened?
    !(open_descriptors - @descriptors).empty?
  end

  # Their numbers as text, without the main script's, and without the one that the listing itself needs.
  def open_descriptors
    Dir.open(DESCRIPTORS) do |directory|
      names = directory.children
      names.delete(directory.fileno.to_s)
      names.delete(@stream.fileno.to_s) unless @stream.nil? || @stream.closed?
      names
    end
  end

  # What the end has to do for these cannot be looked up later: an object that was made for a descriptor already open,
  # standard output for example, is flushed. Finalizers run as well: see #initialize.
  def watch
    watch_method(IO.singleton_class, :for_fd)
    watch_method(IO, :initialize)
  end

  # After the first call of the method the process ends the ordinary way.
  def watch_method(owner, name)
    watcher = self
    private = owner.private_method_defined?(name, false)
    original = owner.instance_method(name)
    owner.alias_method(name, name) # nothing is discarded then, of which Ruby would warn
    owner.define_method(name) do |*arguments, **keywords, &block|
      # Whether this frame is among them depends on how this file is called, and on the version.
      watcher.note(name, caller_locations(0, 2).find { |place| place.path != __FILE__ })
      original.bind_call(self, *arguments, **keywords, &block)
    rescue StandardError => e
      watcher.hide(e, name)
      raise
    end
    owner.__send__(:private, name) if private
  end
end

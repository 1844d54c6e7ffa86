# frozen_string_literal: true

# One freeze, from the start of Ruby to the main part of the thawed program.
class FreezeRun
  # The versions of RUBIES in crates/runtime probe.rs, which has already refused all others.
  VERSIONS = %w[3.1 3.2 3.3 3.4].freeze
  EXPECTED = "CRuby #{VERSIONS.first} to #{VERSIONS.last}".freeze
  MERGING_REQUEST = 1 << 16
  DEAD_HOOK = "the main part mentions before_freeze, but it runs after the freeze, and a hook that it registers is never " \
              "called. Register it in a file that --preload names, or call Snapboot.freeze_point behind it"
  # The files that load the features of training runs.
  LEARNING = %w[process_state deeds globals trial learnt].freeze
  SECRETS = %w[secret_values comparison].freeze
  # The files that walk through all that a boot holds.
  COMPARING = %w[object_paths object_code below_keys process_roots running_frames start_comparison form_comparison].freeze
  EMPTY = "the script is empty, and each start would be that of an empty one"
  # The last arguments pad the argv area: as many as `snapboot freeze` (boot.rs) appends.
  PAD_ARGUMENTS = 1024

  # The state of this process for Snapboot.state.
  attr_reader :state

  # Records where the time of a thaw goes; or nil.
  attr_reader :spans

  # The BootArchive of an image of the store, or nil.
  attr_reader :archive

  # +feature+: the path of the file that Ruby was told to require. +load_file+: loads a file of the front end by name.
  def initialize(feature, load_file)
    @features = [feature]
    @load_file = load_file
    @directory = File.dirname(feature)
    @state = :freezing
  end

  # Sets up the freeze, which happens when Ruby is about to parse the main script, and watches what is loaded before.
  def start
    Reads.phase(Channel::OF_FRONT_END)
    @request = Request.new(ENV.fetch("SNAPBOOT_FREEZE_DIR"))
    @report = Report.new(@request.directory)
    RealSecrets.names = @request.list("secret")
    @report.attributes = @attributes = ProcessAttributes.new
    check_runtime
    load_recipes
    @settings = Settings.new
    ARGV.pop(PAD_ARGUMENTS) unless @request.simulated?
    Environment.clean
    @environment = Environment.new(@request.directory)
    @locale = Locale.new unless @request.simulated?
    @seeding = Seeding.new
    @evidence = Evidence.new(@request)
    @search_path = SearchPath.new(@request)
    @exit = Exit.new(@features.first)
    prepare_load_report
    prepare_place
    Process.instance_variable_set(:@__snapboot__, self)
    at_exit { at_end }
    check_syntax
    watch
  end

  # Call when Ruby continues with the main script. +feature+: the path of the file that calls this.
  def take_main_script(feature)
    Reads.phase(Channel::OF_FRONT_END)
    @features << feature
    ignore_last_feature
    find_main_script
    Reads.phase(Channel::OF_PROGRAM)
  end

  # Freezes here, if the program waits for it. Returns nil, in the thawed process.
  def freeze_point
    return unless @waiting

    @waiting = false
    @is_called = true
    freeze
    @at ? @at.check(@context) : @context.renew_arguments(CommandLine.new(@context.main_words).arguments)
    after_thaw
    nil
  end

  private

  # Starts from an image of the store report what else they load.
  def prepare_load_report
    return if @request.value("profile").nil?

    # Loaded here, since every loaded file costs each thaw time.
    %w[activations load_report].each { |name| @load_file.call(name) }
    @load_report = LoadReport.new(@request)
    return if @request.value("archive").nil?

    @load_file.call("boot_archive")
    @archive = BootArchive.new(@request, @load_report)
  end

  def prepare_place
    return if @request.value("at").nil?

    @load_file.call("freeze_at")
    @at = FreezeAt.new(@request)
  end

  def check_runtime
    unless RUBY_ENGINE == "ruby" && VERSIONS.include?(RUBY_VERSION[/\A\d+\.\d+/])
      @report.user_mistake("#{RUBY_DESCRIPTION} cannot be frozen yet. Expected: #{EXPECTED}.")
    end
    ObjectHeader.layout_known? # for good: nothing has to be compared in a thawed process
    refuse(Compilers.refusal || Compilers.warning(@request.options))
  end

  def load_recipes
    Recipes.load(@request, @load_file)
  rescue Recipes::Broken => e
    @report.user_mistake(e.message)
  end

  # Ends the freeze if there is a reason.
  def refuse(reason)
    @report.user_mistake(reason) if reason
  end

  def find_main_script
    # Ruby drops an empty script at once, and goes straight to its end.
    if @request.main == :script && File.zero?(@request.value("script"))
      return @request.leaves_script? ? refuse(EMPTY) : at_exit { default_freeze_point }
    end

    @script = (PrismScript.parses? ? PrismScript : MainScript).new
    is_same = @request.main == :script && !@request.leaves_script?
    is_same ? @script.prepare_renaming(always: @load_report) : @script.prepare_exchange
    @script.before_parse { default_freeze_point }
  rescue MainScript::NotFound => e
    @report.user_mistake("cannot take over the main script: #{e.message}. " \
                         "Expected: #{EXPECTED} as its authors or Debian build it; this is #{RUBY_DESCRIPTION}.")
  end

  # `snapboot freeze` lets Ruby require one more feature, which does not exist; only PrismScript uses it.
  def ignore_last_feature
    main = TOPLEVEL_BINDING.receiver
    main.define_singleton_method(:require) { |_| main.singleton_class.__send__(:remove_method, :require) }
  end

  def default_freeze_point
    guard { boot }
    return if @waiting

    check_input
    guard { @script&.open_name }
    freeze
    run_main
  end

  # An error in the front end's own code must not look like an error of the program. While freezing it is reported; in a
  # thawed process the program is started the ordinary way.
  def guard
    yield
  rescue ObjectHeader::Unknown => e
    @state == :thawed ? @context.fall_back(e.message) : @report.user_mistake(e.message)
  rescue StandardError, ScriptError => e
    @report.unexpected(e, @directory) unless @state == :thawed
    @context.fall_back("unexpected #{Report.described(e, @directory)}")
  end

  # Watches what counts for the image.
  def watch
    @inputs = Inputs.new(@directory)
    @inputs.watch
    @gem_lists = GemLists.new
    @gem_lists.watch
    values = @evidence.watched_values(@load_file, @directory)
    @report.reads = @reads = Reads.new(@directory, @environment)
    @reads.attributes = @attributes
    @reads.terminal = @request.list("terminal").map(&:to_i) unless @request.list("binds_terminal").empty?
    @reads.watch(@request.main == :script || @at ? nil : $0, starts_alike: @at)
    @origins = Origins.new(@directory, @request, @attributes) if @request.value("origins") == "1"
    @origins&.watch
    @evidence.watch(values)
  end

  # Everything that the frozen process must have done.
  def boot
    # The -r libraries are loaded: from now on the front end must be invisible.
    @features.each { |feature| $LOADED_FEATURES.delete(feature) }
    own = $LOADED_FEATURES.size
    Preload.new(@request.list("preload"), @report, @directory).run
    @report.check_attributes
    Recipes.load_main(@request.value("script").to_s)
    @waiting = @at&.begin { freeze_point } || (@request.main == :script && @request.main_source.include?("freeze_point"))
    load_learnt unless @waiting
    @report.add("left", "") if $LOADED_FEATURES.size == own && left_to_script?
    @report.add("warning", DEAD_HOOK) if !@waiting && @request.main_source.include?("before_freeze")
  end

  # Loads the features of training runs.
  def load_learnt
    return if @request.list("learnt").empty?

    LEARNING.each(&@load_file)
    learnt = Learnt.new(@request, @request.main == :bare || @request.leaves_script? ? nil : @request.main_source)
    learnt.load(@reads, @gem_lists)
    learnt.report_to(@report)
    @learnt = learnt.any?
  rescue StandardError, ScriptError => e
    @report.program_failed(e, @directory)
  end

  # Whether the script loads something in each start.
  def left_to_script?
    @request.main == :script && !@waiting && @request.main_source.match?(/\b(require|load)/)
  end

  # Refuses a script that can never run. An image that reports the error at every start would also be correct, but the user
  # is watching the freeze.
  def check_syntax
    error = MainSyntax.new(@request).error
    @report.program_failed(error, @directory, "it has a syntax error, which ends each of its starts") if error
  end

  # Returns in the thawed process. The freezing process ends in here.
  def freeze
    run_before_freeze
    guard { freeze_program }
  end

  def freeze_program
    @settings.settle
    prepare_program
    refuse(Compilers.refusal)
    @seeding.finish
    @context = Context.new(@request, @environment, @seeding, @settings)
    @locale&.settle(@report)
    @context.locale = @locale
    @context.umask = @umask
    @context.search_path = @search_path
    @search_path.settle(@report)
    settle_secrets unless @evidence.other?
    settle_evidence
    @context.warnings.each { |warning| @report.add("repeats", warning) }
    @seeding = nil
    @exit.prepare(@script&.stream)
    @load_report&.settle
    @archive&.settle
    warm_up
    @repeats = @attributes.changed.any? { |name| name.start_with?("+") }
    Channel.call(Channel::ARM)
    # A large request makes malloc merge what the collections have freed: now, instead of page by page in every thaw.
    String.new(capacity: MERGING_REQUEST)
    child = Process.fork
    end_freezing(child) if child

    @state = :thawed
    @context.read_command_line
    @exit.remember_descriptors
    # `snapboot freeze` looks at the pages that a thaw has written to up to here, and ends the process.
    Process.kill(:STOP, Process.pid) if ENV.key?("SNAPBOOT_REHEARSE")
  end

  # Finds where the program keeps its secrets. Ends here if nothing is frozen, and the process is compared with another boot.
  def settle_secrets
    compares = @request.value("compares_secrets") == "1"
    unless @request.list("secret").empty?
      SECRETS.each(&@load_file)
      @secrets = SecretValues.new(@request.directory, @request.list("secret"), compares)
      @secrets.settle(@environment.before, @recipes.flat_map(&:computed_of_secrets), @report)
      @context.secrets = @secrets
      RealSecrets.close
    end
    @report.finish(Report::WRITTEN) if compares
  end

  # Finds where the program keeps facts about its start. Ends here if nothing is frozen, and the process is compared with
  # another start.
  def settle_evidence
    @context.evidence = @evidence
    @evidence.settle(@asked, @secrets, @report) do
      COMPARING.each(&@load_file)
      @search_path.take_out
      (@evidence.form_number ? FormComparison : StartComparison).new(@request.directory, @evidence, object_paths).run
    end
    @report.finish(Report::WRITTEN) if @evidence.other?
  end

  # Returns the paths of all that the program holds.
  def object_paths
    renewed, kept = @environment.kept
    directory = Dir.pwd
    kept["the current directory"] = directory unless directory.b == @evidence.here[:cwd]
    roots = { **kept, **@settings.kept, **ProcessRoots.all(@umask) }
    roots.update("exit handlers" => @evidence.exit_handlers, "other threads" => @lost_threads,
                 "random numbers" => @context.random_position)
    roots.update(RunningFrames.all(@directory, "#{Module.nesting.last.inspect}::")) if @is_called
    ObjectPaths.new(Module.nesting.last, @directory, roots, @evidence.private_constants, renewed, @secrets)
  end

  # Ruby itself (as of -r) starts no script then.
  def check_input
    return unless STDIN.closed?

    @report.user_mistake("the program has closed STDIN while it booted, and Ruby starts no script without it. Close it in " \
                         "the main part.")
  end

  def run_before_freeze
    @report.check_attributes
    run_hooks(:before_freeze)
    @recipes = Recipes.applicable
    @recipes.each(&:before_freeze)
  rescue StandardError, ScriptError => e
    @report.program_failed(e, @directory)
  end

  def prepare_program
    @recipes.each do |recipe|
      recipe.threads.each { |thread| Channel.call(Channel::RESTARTS, LostThreads.number_of(thread)) }
      recipe.guards.each { |guard| @report.add("guard", guard) }
    end
    @lost_threads = LostThreads.all.each { |thread| @report.add("thread", thread) }
    @umask = @reads.umask
    @reads.report_to(@report)
    @asked = { folder: @reads.folder?, terminal: @reads.terminal? }
    @evidence.stop
    @report.reads = nil
    @inputs.report_to(@report, @request.leaves_script? ? nil : @request.value("script"))
    @gem_lists.report_to(@report)
    @kept_gems = @gem_lists.kept
    @gem_lists.forget_homes
    @origins&.report_to(@report)
    Times.new(@request.directory).kept.each { |kind, name| @report.add(kind.to_s, name) }
    @inputs = @gem_lists = @reads = @origins = nil
    # This feature is always there: the call makes Ruby index the changed list of features now.
    require "thread" # rubocop:disable Lint/RedundantRequireStatement
    Heap.settle(forks: !@request.list("at").empty?)
  end

  # Runs the parts of a thaw that have no effect, so that inline caches are filled and methods are found: each of them is a
  # page that a thaw would otherwise write to.
  def warm_up
    2.times do
      @context.warm_up
      @script.class.warm_up unless @request.main == :script
      @exit.remember_descriptors
      @exit.warm_up
      %w[-ea -ra -Ia -w --].combination(2) { |words| CommandLine.new(words + ["a"]) }
    end
  end

  def end_freezing(child)
    Channel.call(Channel::DISARM)
    _, status = Process.wait2(child)
    end_simulation(status) if @request.simulated?
    case status.exitstatus
    when 0 then @report.finish(Report::WRITTEN)
    when 3 then @report.finish(Report::REFUSED)
    else
      @report.add("error", "the freezer failed (#{status})") unless status.exitstatus == 4
      @report.finish(Report::REFUSED)
    end
  end

  # Without an image the child is the program: end as it did.
  def end_simulation(status)
    @report.finish(status.exitstatus) unless status.signaled?

    trap(status.termsig, "SYSTEM_DEFAULT") unless status.termsig == Signal.list["KILL"]
    Process.kill(status.termsig, Process.pid)
    sleep
  end

  # After the thaw: lets Ruby run the new command line.
  def run_main
    options = guard { @request.main == :script ? take_script : take_command }
    after_thaw
    apply_options(options) if options
    guard { @settings.put_back_before_main } if @script
    @attributes.start_main_in(@started_in, @directory)
  end

  def take_script
    name_script(@context.main_words.first) if @script
    arguments = @context.main_words.drop(1)
    unless @recipes.all? { |recipe| recipe.honours?(arguments) }
      @context.fall_back("with these arguments the application may be another one")
    end
    @context.renew_arguments(arguments)
    nil
  end

  # Returns the CommandLine whose options must still be obeyed.
  def take_command
    command = CommandLine.new(@context.main_words)
    @context.fall_back("these options need an ordinary start of Ruby") unless command.honoured?
    @context.fall_back("an option may change what was preloaded") if command.changes_preload? && preloaded?
    @context.fall_back("only Ruby itself can read the program") unless take(command)
    @context.renew_arguments(command.arguments)
    command
  end

  # In another directory the launcher names the script by its absolute path; or by a link, see crates/launcher link.rs.
  def name_script(name)
    return if @request.leaves_script? && @script.run_file(name)
    return @script.keep_name if name == @request.list("argv")[@request.main_index] && !@request.leaves_script?
    return if !@request.leaves_script? && @script.take_path(name)

    @context.fall_back("the script cannot be given another name")
  end

  def preloaded?
    @learnt || !@request.list("preload").empty?
  end

  def take(command)
    case command.kind
    when :code then @script.run_code(command.code)
    when :script then @script.run_file(command.name)
    when :stdin then @script.run_stdin
    end
  end

  def apply_options(command)
    $LOAD_PATH.unshift(*command.directories.map { |name| File.expand_path(name) }) unless command.directories.empty?
    unless command.verbose == :unchanged
      @settings.start_with("Warning[:deprecated]", command.verbose == true)
      @settings.start_with("$VERBOSE", command.verbose)
    end
    command.features.each { |feature| require feature }
  rescue StandardError, ScriptError => e
    e.set_backtrace(e.backtrace.reject { |frame| frame.start_with?(@directory) })
    raise
  end

  def after_thaw
    guard do
      @context.renew
      @settings.freeze_again
      @settings.put_back
    end
    @spans = @context.spans
    @spans&.step(:context, "gems, framework")
    @load_report&.begin
    repeat_attributes if @repeats
    @kept_gems&.renew
    @recipes.each(&:after_thaw)
    run_hooks(:after_thaw)
    @spans&.step(:main, "__main__")
    nil
  end

  # Repeats the boot's changes to the kernel's attributes of this process, before the program sees them.
  def repeat_attributes
    @started_in = @attributes.current_directory
    name = @attributes.repeat
    @context.fall_back("this start cannot change its #{name} as the program did when it was frozen") if name
  end

  def run_hooks(kind)
    Snapboot.__send__(:run_hooks, kind) if Object.const_defined?(:Snapboot)
  end

  # Anything unexpected is left to Ruby's own end.
  def end_thawed(error)
    @load_report&.write_report
    @spans&.write_all
    @exit.leave(error)
  rescue StandardError
    nil
  end

  # The last of all exit handlers.
  def at_end
    error = $! # a rescue in here would clear it
    return end_thawed(error) if @state == :thawed

    return if error && !error.is_a?(SystemExit) # Ruby shows it

    @report.user_mistake(
      if @at
        @at.never_reached
      elsif @waiting
        "the main script mentions freeze_point, but ended without reaching Snapboot.freeze_point."
      else
        "the main script was never parsed: is it empty?"
      end
    )
  end
end

# frozen_string_literal: true

# A training run: `ruby -r THIS_FILE SCRIPT` runs the program as in an ordinary start, and reports at its end what was
# loaded.
#
# The report is DIR/profile, entries as in the request: `module`, a record of each feature and the one whose loading loaded
# it, in the order in which their loading began; what the script does before the first of them that is no part of Ruby:
# `gem`, a record of the name and the version of each gem active then, and `path` for the directories in front of $LOAD_PATH;
# `searched` for each folder that was added to $LOAD_PATH at any time; `ran` for each file that was loaded and is no feature;
# `activated` for each gem that may be active before the program asks for it; `changed` for each variable that has changed. A
# run that ends without exit handlers reports nothing. The program sees no constants or features of it.
training = Module.new
%w[channel activations].each { |name| training.module_eval(File.read("#{__dir__}/front_end/#{name}.rb")) }
training.module_eval do
  # One run, from the start of Ruby to the last exit handler.
  self::Run = Class.new do
    def initialize(own, activations, record)
      @own = own
      @record = record
      @folder = ENV.delete("SNAPBOOT_FREEZE_DIR")
      @process = Process.pid
      @variables = ENV.to_h
      @features = $LOADED_FEATURES.dup
      @begun = {}
      @gems = active_gems
      @activations = activations.new
      @load_path = $LOAD_PATH.dup
      @begins = {}
      @searched = @load_path
    end

    def start
      leave_no_feature
      watch
      # The handler registered first is called last.
      at_exit { write_profile if Process.pid == @process }
    end

    private

    # Ruby adds the feature when this file has been loaded.
    def leave_no_feature
      TracePoint.new(:c_return) do |event|
        event.disable if $LOADED_FEATURES.last == @own && $LOADED_FEATURES.pop
      end.enable
    end

    # Ruby lists a feature when it is loaded, after those that it requires.
    def watch
      TracePoint.new(:script_compiled) do |event|
        path = event.instruction_sequence.path
        frames = caller_locations
        # The main script has no loader.
        next if event.eval_script || @begun.key?(path) || frames.empty?

        record_searched
        @begun[path] = frames.find { |frame| frame.label == "<top (required)>" }&.path
        @begins[path] = [active_gems - @gems, $LOAD_PATH.dup] if @begins.size < 10 && !part_of_ruby?(path)
      end.enable
    end

    def record_searched
      @searched |= $LOAD_PATH.map { |folder| File.expand_path(folder) }
    end

    def part_of_ruby?(path)
      return true unless defined?(Gem) && defined?(RbConfig)

      rubygems = @features.find { |feature| feature.end_with?("/rubygems.rb") }.to_s.delete_suffix(".rb")
      [RbConfig::CONFIG["rubylibdir"], rubygems].any? { |folder| path.start_with?("#{folder}/") }
    end

    def active_gems
      defined?(Gem.loaded_specs) ? Gem.loaded_specs.map { |name, spec| [name, spec.version.to_s] } : []
    end

    # Returns what the script itself has inserted in front.
    def added(paths)
      of_gems = defined?(Gem.loaded_specs) ? Gem.loaded_specs.each_value.flat_map(&:full_require_paths) : []
      front = paths.take_while { |path| !@load_path.include?(path) }
      front.grep(String).grep(%r{\A/}) - of_gems
    end

    def write_profile
      order = @begun.keys.each_with_index.to_h
      features = ($LOADED_FEATURES - @features).select { |path| path.start_with?("/") && File.file?(path) }
      features = features.each_with_index.sort_by { |path, index| [order.fetch(path, order.size), index] }.map(&:first)
      entries = features.map { |path| "module=#{@record.call(path, @begun[path])}" }
      gems, paths = @begins.find { |path, _| features.include?(path) }&.last
      entries += gems.to_a.map { |gem| "gem=#{@record.call(*gem)}" }
      entries += added(paths.to_a).map { |path| "path=#{path}" }
      record_searched
      entries += (@searched - @load_path).map { |folder| "searched=#{folder}" }
      ran = (@begun.keys - $LOADED_FEATURES).select { |path| File.file?(path) }
      entries += ran.map { |path| "ran=#{File.realpath(path)}" }
      entries += @activations.early.map { |gem| "activated=#{gem}" }
      now = ENV.to_h
      changed = (@variables.keys | now.keys).reject { |name| @variables[name] == now[name] }
      entries += changed.map { |name| "changed=#{name}" }
      File.binwrite("#{@folder}/profile", entries.map { |entry| "#{entry}\0".b }.join)
    end
  end
end
training.module_eval { self::Run.new(__FILE__, self::Activations, self::Channel.method(:record)).start }

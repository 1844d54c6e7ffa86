# frozen_string_literal: true

# Finds which files the boot read, as far as Ruby knows: the freezer's own record adds the rest.
class Inputs
  # +own_directory+: files below it belong to the front end.
  def initialize(own_directory)
    @own = own_directory
    @compiled = []
    @questions = KindQuestions.new
    # Ruby keeps no list of files that were `load`ed.
    @trace = TracePoint.new(:script_compiled) do |event|
      path = event.instruction_sequence&.absolute_path
      @compiled << path if path
    end
  end

  # Starts recording.
  def watch
    @questions.watch
    @trace.enable
  end

  # Stops recording and adds the files to +report+.
  def report_to(report, script)
    @trace.disable
    @questions.stop
    files = $LOADED_FEATURES + @compiled + gemspecs + bundle
    # Ruby follows the links to it only after the thaw: resolving them now records which links they are.
    files.push(File.expand_path(script), File.realpath(script)) if script
    files.uniq.each do |file|
      next if !file.start_with?("/") || (file.start_with?(@own) && file != "#{@own}.rb")

      report.add("loaded", file) if File.file?(file)
    end
  end

  private

  def gemspecs
    defined?(Gem.loaded_specs) ? Gem.loaded_specs.values.map { |spec| spec.loaded_from.to_s } : []
  end

  def bundle
    gemfile = ENV["BUNDLE_GEMFILE"].to_s
    return [] unless gemfile.start_with?("/")

    root = File.dirname(gemfile)
    [gemfile, "#{gemfile}.lock", "#{root}/gems.locked", "#{root}/.bundle/config"]
  end
end

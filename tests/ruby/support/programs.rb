# frozen_string_literal: true

require "fileutils"
require "minitest/autorun"
require "open3"
require "rbconfig"
require "tmpdir"

ROOT = File.expand_path("../../..", __dir__)
FRONT_END = "#{ROOT}/ruby/lib/snapboot".freeze
SNAPBOOT = ENV["SNAPBOOT"] && File.expand_path(ENV.fetch("SNAPBOOT"))

# What a run showed.
Shown = Struct.new(:output, :errors, :status, :signal) do
  def self.from_output(output, errors, status)
    new(output, errors.gsub(/0x\h{16}/, "0xADDRESS"), status.exitstatus, status.termsig)
  end
end

# Runs one command the ordinary way, and frozen and thawed.
class Programs
  RUBY = RbConfig.ruby

  # Images of bare interpreters, by options and locale.
  @images = {}
  singleton_class.attr_reader :images

  # +command+: what follows the interpreter in COMMAND; +arguments+: what the image is given.
  def initialize(command, arguments, directory:, preload: [], input: "", environment: {}, interpreter_options: [])
    @options = interpreter_options
    @command = command
    @arguments = arguments
    @directory = directory
    @preload = preload
    @input = input
    @environment = environment
  end

  # COMMAND ARGS.
  def ordinary
    run(RUBY, *@options, *@command, *@arguments)
  end

  # IMAGE ARGS.
  def thawed
    SNAPBOOT ? from_image : simulated
  end

  # The report of a freeze alone.
  attr_reader :report

  private

  def run(*words, environment: @environment, input: @input)
    Shown.from_output(*Open3.capture3(environment, *words, stdin_data: input, chdir: @directory, close_others: true))
  end

  def from_image
    return run(*bare_image, *@arguments) if @command.empty? && @preload.empty?

    Dir.mktmpdir do |place|
      frozen = freeze("#{place}/image")
      return frozen unless frozen.status.zero?

      run("#{place}/image", *@arguments)
    end
  end

  # Bare interpreters differ in nothing but options and locale: one image serves many tests.
  def bare_image
    self.class.images[[@options, @environment["LC_ALL"]]] ||= begin
      place = Dir.mktmpdir
      Minitest.after_run { FileUtils.rm_rf(place) }
      frozen = freeze("#{place}/image")
      raise "no image: #{frozen.errors}" unless frozen.status.zero?

      ["#{place}/image"]
    end
  end

  def freeze(image)
    preload = @preload.empty? ? [] : ["--preload", @preload.join(",")]
    run(SNAPBOOT, "freeze", "-o", image, *preload, "--", RUBY, *@options, *@command, input: "")
  end

  def main
    return :bare if @command.empty?

    @command.first.start_with?("-") ? :code : :script
  end

  def simulated
    Dir.mktmpdir do |place|
      write_plan(place)
      script = main == :script ? @command.first(1) : ["#{FRONT_END}#{"/." * 512}/stand_in_for_main.rb"]
      last = ["-r", "#{FRONT_END}/last_library.rb", "-r", "snapboot-main-script"]
      shown = run(RUBY, "-r", "#{FRONT_END}/freeze.rb", *@options, *last, *script,
                  environment: @environment.merge("SNAPBOOT_FREEZE_DIR" => place))
      @report = File.exist?("#{place}/report") ? File.binread("#{place}/report").split("\0") : []
      shown
    end
  end

  # An entry of the request with the code of a recipe.
  def recipe(code)
    fields = [File.basename(File.dirname(code)), File.dirname(code), File.read(code)]
    "recipe_code=#{fields.map { |field| "#{field.bytesize}:#{field}" }.join}"
  end

  def write_plan(place)
    words = [RUBY, *@options, *@command]
    entries = ["main=#{main}", "main_index=#{1 + @options.size}", "test_command_line=#{place}/cmdline"]
    entries += words.map { |word| "argv=#{word}" } + @preload.map { |name| "preload=#{name}" }
    entries += Dir.glob("#{ROOT}/recipes/*/ruby.rb").map { |code| recipe(code) }
    entries << "script=#{File.expand_path(@command.first, @directory)}" if main == :script
    File.binwrite("#{place}/request", entries.map { |entry| "#{entry}\0" }.join)
    File.binwrite("#{place}/on_demand", "")
    File.binwrite("#{place}/cmdline", (words + @arguments).map { |word| "#{word}\0" }.join)
  end
end

# A test whose cases are run both ways.
class SameResult < Minitest::Test
  def setup
    @directory = File.realpath(Dir.mktmpdir)
  end

  def teardown
    FileUtils.rm_rf(@directory)
  end

  # Writes a file next to the program.
  def file(name, text, mode: 0o644)
    path = "#{@directory}/#{name}"
    FileUtils.mkdir_p(File.dirname(path))
    File.write(path, text)
    File.chmod(mode, path)
    name
  end

  # Asserts that both ways show the same, and returns what was shown.
  def same(command, *arguments, **how)
    programs = Programs.new(command, arguments, directory: @directory, **how)
    ordinary = programs.ordinary
    assert_equal ordinary.to_h, programs.thawed.to_h
    ordinary
  end

  # `ruby -e CODE ARGUMENTS` on an image of the bare interpreter.
  def same_code(code, *arguments, **how)
    same([], "-e", code, *arguments, **how)
  end

  # Freezes and thaws; returns what was shown and the report.
  def thawed(command, *arguments, **how)
    programs = Programs.new(command, arguments, directory: @directory, **how)
    [programs.thawed, programs.report]
  end
end

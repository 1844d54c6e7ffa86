# frozen_string_literal: true

# Loads what --preload names: features, as `require` takes them, and files given as ./path or /path.
class Preload
  SUFFIXES = ["", ".rb", ".so"].freeze

  # +front_end_directory+: its frames are removed from the program's backtraces.
  def initialize(names, report, front_end_directory)
    @names = names
    @report = report
    @front_end_directory = front_end_directory
  end

  # Loads all of them. Ends the process with a report if one is unknown or raises.
  def run
    @names.each do |name|
      load_one(name)
      @report.add("preloaded", name)
    end
  end

  private

  def load_one(name)
    feature = path?(name) ? file(name) : name
    require(feature)
  rescue LoadError => e
    unknown(name) if e.path == name && !path?(name)
    @report.program_failed(e, @front_end_directory)
  rescue SystemExit => e
    @report.add("error", "preload #{name} ended the process with status #{e.status}. Expected: it loads and returns. " \
                         "Preload a library or an application's boot file, not a command.")
    @report.finish(Report::PROGRAM_FAILED)
  rescue StandardError, ScriptError, SecurityError, NoMemoryError, SystemStackError => e
    @report.program_failed(e, @front_end_directory)
  end

  def path?(name)
    name.start_with?("./", "../", "/")
  end

  # Returns the name under which `require_relative` would find the file.
  def file(name)
    candidates = SUFFIXES.map { |suffix| File.expand_path(name + suffix) }
    found = candidates.find { |candidate| File.file?(candidate) }
    return File.realpath(found) if found

    @report.user_mistake("unknown preload #{name}: there is no file #{candidates.join(", ")}. " \
                         "A path is taken relative to the current directory, #{Dir.pwd}.")
  end

  def unknown(name)
    places = $LOAD_PATH.map(&:to_s)
    gems = defined?(Gem.path) ? ", nor in a gem below #{Gem.path.join(", ")}" : ""
    @report.user_mistake("unknown preload #{name}: `require #{name.inspect}` finds it in none of the #{places.size} load " \
                         "path entries (#{places.join(", ")})#{gems}. Check the spelling; install the gem for this Ruby " \
                         "(#{RUBY_VERSION}), or add its directory with -I; a file of your own is named by its path, " \
                         "as in ./#{name}.")
  end
end

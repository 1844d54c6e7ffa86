# frozen_string_literal: true

# The gem concurrent-ruby. Up to 1.1.6 it starts a thread when one of its files is loaded: that frees the places of variables
# that are gone, and does nothing else. A fork drops it, so a thaw starts it again.
module ConcurrentRecipe
  FILE = "/concurrent/atomic/ruby_thread_local_var.rb"
  # Their finalizers free such places, or tell the thread to do so. The second is that of 1.2 and later.
  VARIABLES = [FILE, "/concurrent/atomic/locals.rb"].freeze
  NAME = :THREAD
  # What the lines that start it come to (64-bit FNV-1a) in all versions that have it, without indentation and comments. From
  # others nobody knows what the thread does.
  FORM = 0xe66aca2fe2d225e0

  class << self
    include Recipes::Defaults

    def applies?
      !threads.empty?
    end

    def harmless_finalizers?(path)
      path.end_with?(*VARIABLES)
    end

    # Asked for after each feature of a training run, and at the end of each thawed process.
    def threads
      return @threads if @threads
      return [] unless defined?(::Concurrent::RubyThreadLocalVar) && known_form?

      @threads = [holder.const_get(NAME)].select(&:alive?)
    end

    def before_freeze
      # It is FORM, at its own place: that is what the thread shows of itself.
      @start = holder.class_eval(@code.sub("#{NAME} = ", "-> { ") << " }", *@place)
    end

    def after_thaw
      started = @start.call
      # As Ruby would have it if the program had said something else before it loaded the file.
      started.report_on_exception = @threads.first.report_on_exception
      holder.__send__(:remove_const, NAME)
      holder.const_set(NAME, started)
      holder.private_constant(NAME)
      @threads = [started]
    end

    private

    def holder
      ::Concurrent::RubyThreadLocalVar
    end

    def known_form?
      @place = holder.const_source_location(NAME, false)
      file, first = @place
      return false unless file&.end_with?(FILE)

      lines = File.readlines(file, encoding: Encoding::UTF_8).drop(first - 1)
      indent = lines.first[/\A */]
      lines = lines[..lines.index("#{indent}end\n")]
      @code = lines.join.strip
      fingerprint(lines.map(&:strip).grep_v(/\A#/).join("\n")) == FORM
    rescue SystemCallError, ArgumentError
      false
    end

    # By what Ruby has without another feature.
    def fingerprint(text)
      text.each_byte.inject(0xcbf29ce484222325) { |hash, byte| ((hash ^ byte) * 0x100000001b3) & 0xffffffffffffffff }
    end
  end
end

Recipes.register(ConcurrentRecipe)

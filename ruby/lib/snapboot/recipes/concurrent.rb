# frozen_string_literal: true

# The gem concurrent-ruby. Up to 1.1.6 it starts a thread when one of its files is loaded: that frees the places of variables
# that are gone, and does nothing else. A fork drops it, so a thaw starts it again.
module ConcurrentRecipe
  FILE = "/concurrent/atomic/ruby_thread_local_var.rb"
  # Their finalizers free such places, or tell the thread to do so. The second is that of 1.2 and later.
  VARIABLES = [FILE, "/concurrent/atomic/locals.rb"].freeze
  NAME = :THREAD
  # The lines that start it, in all versions that have it, without comments. From others nobody knows what the thread does.
  FORM = <<~RUBY.lines.map(&:strip).freeze
    THREAD = Thread.new do
      while true
        method, i = QUEUE.pop
        case method
        when :thread_local_finalizer
          LOCK.synchronize do
            FREE.push(i)
            ARRAYS.each_value do |array|
              array[i] = nil
            end
          end
        when :thread_finalizer
          LOCK.synchronize do
            ARRAYS.delete(i)
          end
        end
      end
    end
  RUBY

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
      return [] unless defined?(::Concurrent::RubyThreadLocalVar) && known?

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

    def known?
      @place = holder.const_source_location(NAME, false)
      file, first = @place
      return false unless file&.end_with?(FILE)

      lines = File.readlines(file, encoding: Encoding::UTF_8).drop(first - 1)
      indent = lines.first[/\A */]
      lines = lines[..lines.index("#{indent}end\n")]
      @code = lines.join.strip
      lines.map(&:strip).grep_v(/\A#/) == FORM
    rescue SystemCallError, ArgumentError
      false
    end
  end
end

Recipes.register(ConcurrentRecipe)

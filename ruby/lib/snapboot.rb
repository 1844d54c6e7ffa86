# frozen_string_literal: true

require_relative "snapboot/version"

# Hooks for programs that are frozen into an image.
#
# In an ordinary start they cost nothing and do nothing, except that Snapboot.defer runs its block at once.
# Blocks are kept for as long as the process lives.
module Snapboot
  # Raised when a hook raises: the message names the hook, #cause is what it raised.
  class HookError < StandardError; end

  @before_freeze = []
  @after_thaw = []

  class << self
    # Runs the block before the image is written. The hook registered last runs first.
    # Returns the block. Raises ArgumentError without one.
    def before_freeze(&block)
      raise ArgumentError, "Snapboot.before_freeze needs a block" unless block

      @before_freeze.unshift(block)
      block
    end

    # Runs the block after every thaw, before the program goes on. The hook registered first runs first.
    # Returns the block. Raises ArgumentError without one.
    def after_thaw(&block)
      raise ArgumentError, "Snapboot.after_thaw needs a block" unless block

      @after_thaw.push(block)
      block
    end

    # Runs the block now in an ordinary start and in a thawed process; while freezing, at every thaw instead.
    # Returns nil. Raises ArgumentError without a block, and in the first case whatever the block raises.
    def defer(&block)
      raise ArgumentError, "Snapboot.defer needs a block" unless block

      state == :freezing ? @after_thaw.push(block) : yield
      nil
    end

    # Freezes here, instead of at the default freeze point, when the process is being frozen; after a thaw the program
    # goes on here. Does nothing otherwise. Returns nil. Raises HookError when a hook fails.
    def freeze_point
      front_end&.freeze_point
      nil
    end

    # Which process this is: :ordinary, :freezing or :thawed.
    def state
      front_end ? front_end.state : :ordinary
    end

    private

    # The front end that is freezing, or has thawed, this process. It is handed over on an object that every program
    # has, so that the front end needs no constant and this file no environment variable.
    def front_end
      Process.instance_variable_get(:@__snapboot__)
    end

    # The front end calls this with :before_freeze or :after_thaw.
    def run_hooks(kind)
      spans = front_end&.spans
      instance_variable_get(:"@#{kind}").each do |hook|
        spans&.step(:hook, hook.source_location&.join(":"))
        hook.call
      rescue StandardError, ScriptError => e
        file, line = hook.source_location
        raise HookError, "#{kind} hook #{file}:#{line} failed: #{e.message} (#{e.class})"
      end
    end
  end
end

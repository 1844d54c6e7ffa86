# frozen_string_literal: true

# Active Record's pools of connections. No thaw may go on with a session of the boot; a pool that is empty connects on
# demand.
module ActiveRecordRecipe
  # Up to 7.0 their finalizer looks once more whether the process is a forked one: at its end that changes nothing.
  HANDLERS = %w[pool handler].map { |name| "/active_record/connection_adapters/abstract/connection_#{name}.rb" }.freeze
  # A thread of these files looks once a minute for connections that nobody uses; the first up to 6.1.
  REAPERS = ["pool", "pool/reaper"].map { |name| "/active_record/connection_adapters/abstract/connection_#{name}.rb" }.freeze

  class << self
    include Recipes::Defaults

    def applies?
      Object.const_defined?(:ActiveRecord) && ActiveRecord.const_defined?(:Base) && ActiveRecord.autoload?(:Base).nil?
    end

    def harmless_finalizers?(path)
      path.end_with?(*HANDLERS)
    end

    # As long as it has not begun, or sleeps: then it has nothing in hand, and no `ensure`.
    def may_be_cut_off?(thread)
      return false unless reaper?(thread)

      places = thread.backtrace_locations.to_a
      places.empty? || (places.size == 2 && places.first.base_label == "sleep")
    end

    # In another process Active Record makes its pools anew when they are used, and a thread for them.
    def threads
      Thread.list.select { |thread| reaper?(thread) }
    end

    def before_freeze
      if pools.any? { |pool| in_memory?(pool) }
        raise "Active Record has a database of SQLite in memory, which no thaw would have. Open it after the freeze point"
      end

      if pools.any? { |pool| pool.connections.any?(&:transaction_open?) }
        raise "Active Record has a transaction that is open, which no thaw would have. End it before the freeze point"
      end

      call(:clear_all_connections!)
    end

    private

    def reaper?(thread)
      LostThreads.place(thread).end_with?(*REAPERS)
    end

    def pools
      call(:connection_pool_list)
    end

    # Later versions want to know the role.
    def call(name)
      method = ActiveRecord::Base.connection_handler.method(name)
      method.arity.zero? ? method.call : method.call(:all)
    end

    def in_memory?(pool)
      database = pool.db_config.database.to_s
      is_memory = database.empty? || database.include?(":memory:") || database.include?("mode=memory")
      is_memory && pool.connections.any? { |connection| connection.adapter_name == "SQLite" }
    end
  end
end

Recipes.register(ActiveRecordRecipe)

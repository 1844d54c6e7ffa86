# frozen_string_literal: true

module Snapboot
  module Archive
    module Searches
      # Answers to questions about the names in some directories and all that is below them: one entry of the archive. It
      # is an Array of the paths that the answers depend on, the state that these were in, and the answers by question.
      class Trees
        # More questions than this are not remembered, lest a program that asks for another name in every start has
        # something to write in every start.
        MOST_ANSWERS = 16

        # name: of the entry. roots: absolute paths of the directories. context: what else an answer depends on (a
        # String). sources: paths of the files whose code finds the answers.
        def initialize(name, roots, context, sources)
          @name = name
          @roots = roots
          @context = [context, RUBY_DESCRIPTION, *Encoding.default_external, *Encoding.default_internal, *roots].join("\n")
          @sources = sources
        end

        # The answer to a question (a String): a new copy of the one that is remembered, or what the block gives. That is
        # remembered if `exact` is true of it: whether a copy by Marshal is exactly the same, or will be made so.
        def answer(question, exact: ->(_) { true })
          tree, state, answers = recall
          return answers[question] if answers&.key?(question)

          before = look(tree, state) || look(Archive.list_tree(@roots))
          inputs = @sources.map { |source| [:file, source, Archive.identity(source)] }
          result = yield
          remember(*before, { **answers.to_h, question => result }, inputs) if before && exact.call(result)
          result
        end

        private

        # nil where nothing is remembered, or it does not hold any more.
        def recall
          @payload ||= Archive.fetch(:memo, @name, context: @context) or return
          known = Marshal.load(@payload) # rubocop:disable Security/MarshalLoad
          known if look(*known.first(2))
        rescue StandardError
          nil
        end

        # A list of paths and the state that they are in, unless that is another than the one expected.
        def look(tree, expected = nil)
          state = tree && Archive.tree_state(tree) or return
          [tree, state] if [nil, state].include?(expected)
        end

        def remember(tree, state, answers, inputs)
          return if answers.size > MOST_ANSWERS

          @payload = Marshal.dump([tree, state, answers])
          Archive.store(:memo, @name, inputs, @payload, context: @context)
        end
      end
    end
  end
end

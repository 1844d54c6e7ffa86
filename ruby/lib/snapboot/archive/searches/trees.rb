# frozen_string_literal: true

module Snapboot
  module Archive
    module Searches
      # Answers to questions about the names in and below some directories: one entry of the archive. It is an Array of the
      # paths that the answers depend on, their state, and the answers by question. No error here reaches the program.
      class Trees
        # Further questions are not stored. Otherwise a program that asks for another name in every start would write in
        # every start.
        MAX_ANSWERS = 16

        # Returns the current sources of code, for `new`: an Array of inputs.
        def self.sources(paths)
          paths.map { |path| [:file, path, Archive.identity(path)] }
        end

        # name: of the entry. roots: absolute paths of the directories. links: whether a search follows links below them.
        # context: what else an answer depends on (a String). sources: the files whose code finds the answers.
        def initialize(name, roots, links:, context:, sources:)
          @name = name
          @roots = roots
          @links = links
          # Users differ in what they may read.
          reader = [Process.euid, Process.egid, *Process.groups.sort].join(" ")
          encodings = [Encoding.default_external, Encoding.default_internal, Encoding.find("filesystem")].join(" ")
          @context = [context, RUBY_DESCRIPTION, encodings, reader, *roots].join("\n")
          @sources = sources
        end

        # Returns the answer to a question (a String): a new copy of the stored one, or the block's result. That is stored if
        # Marshal.load returns its equal, for which the caller vouches with `exact`, called with the answer.
        def answer(question, exact: ->(_) { true })
          known = attempt { recall }
          return known.fetch(question) if known&.key?(question)

          before = attempt { look_first }
          result = yield
          attempt { remember(known.to_h, question, result) if before && exact.call(result) && same? }
          result
        end

        private

        # Returns the stored answers that are still valid.
        def recall
          Archive.answering("searches of directories") do
            @payload ||= Archive.fetch(:memo, @name, context: @context) or next
            paths, state, answers = Marshal.load(@payload) # rubocop:disable Security/MarshalLoad
            answers if Archive.tree_state(paths) == state
          end
        end

        # A library keeps the results of its first search in this process, so every later answer belongs to the tree's state
        # at that time.
        def look_first
          return same? if @tree

          @tree = Archive.list_tree(@roots, @links)
          !@tree.nil?
        end

        def same?
          Archive.tree_state(@tree[0]) == @tree[1]
        end

        def remember(answers, question, result)
          return if answers.size >= MAX_ANSWERS

          @payload = Marshal.dump([*@tree, { **answers, question => result }])
          Archive.store(:memo, @name, @sources, @payload, context: @context)
        end

        def attempt(&work)
          Archive.attempt(@name, &work)
        end
      end
    end
  end
end

# frozen_string_literal: true

# Whether a start is about the application that the freeze has preloaded. A file of the current directory names that
# application. A start with options, variables or files that the recipe does not allow falls back.
class ApplicationHere
  include Recipes::Defaults

  def initialize(request)
    @without = request.list("here_without")
    @unset = request.list("here_unset")
    with_value, @alone = request.list("here_option").partition { |option| option.end_with?(":") }
    @with_value = with_value.map { |option| option.delete_suffix(":") }
  end

  def applies?
    true
  end

  def honours?(arguments)
    words = arguments.each
    loop { @with_value.include?(word = words.next) ? words.next : (return false unless alone?(word)) }
    @unset.none? { |name| ENV.key?(name) } && @without.none? { |file| File.exist?(file) }
  end

  private

  # Whether it is an option without a value, or one with its value attached.
  def alone?(word)
    @alone.include?(word) || @with_value.any? do |option|
      option.start_with?("--") ? word.start_with?("#{option}=") : word.start_with?(option) && word.size > option.size
    end
  end
end

# frozen_string_literal: true

# The locale that Ruby takes from the environment when it starts. A start with another locale of the same encoding renews it:
# then all strings of the image have the encodings of an ordinary start. In a locale of another encoding each path would have
# that encoding, including the paths in $LOAD_PATH and those derived from it; so a frozen process is bound to the encoding,
# and an image holds one process for each.
#
# The freezer, in this same process, reads and sets it (crates/freezer sys/renewal.rs).
class Locale
  VARIABLES = %w[LC_ALL LC_CTYPE LANG].freeze
  UTF8 = /\A[^.]*\.utf-?8(@.*)?\z/i
  GET = ENV.method(:[])
  private_constant :GET

  # Create this before the program can change anything.
  def initialize
    @booted = variables
    @renewed = ask("thaws") >= 0
  end

  # Records whether the program has chosen a locale itself. Call right before the freeze.
  def settle(report)
    return unless @renewed

    state = ask("state")
    @encoding = state & (Channel::IS_C | Channel::IS_UTF8)
    @renewed = (state & (Channel::HAS_OTHERS | Channel::IS_CHOSEN)).zero? && @encoding == expected
    report.add("renews", "locale") if @renewed
  end

  # Whether the environment names a locale other than the boot's.
  def other?
    variables != @booted
  end

  # Chooses the locale that the environment names. False if its encoding differs from the boot's. Call before the program's
  # changes are applied to the environment.
  def renew
    return true unless @renewed && other?

    state = ask("locale")
    state >= 0 && (state & (Channel::IS_C | Channel::IS_UTF8)) == @encoding && (state & Channel::HAS_OTHERS).zero?
  end

  private

  def variables
    VARIABLES.map { |name| GET.call(name) }
  end

  # By its name: the launcher knows no more of it, either.
  def expected
    name = @booted.find { |value| !value.nil? && !value.empty? }
    return Channel::IS_C if [nil, "C", "POSIX"].include?(name)

    UTF8.match?(name) ? Channel::IS_UTF8 : nil
  end

  # Negative if it cannot be done.
  def ask(question)
    Channel.call(Channel::RENEW, question)&.to_i || -1
  end
end

# frozen_string_literal: true

# The locale that Ruby takes from the environment when it starts. A start in another one of the same encoding renews it: then
# all strings of the image have the encodings that they would have. In a locale of another encoding each path would have
# another, those in $LOAD_PATH and in what was loaded from there; so a frozen process is bound to the encoding, and an image
# holds one for each.
#
# The freezer, in this same process, tells and sets it (crates/freezer sys/renewal.rs).
class Locale
  VARIABLES = %w[LC_ALL LC_CTYPE LANG].freeze
  UTF8 = /\A[^.]*\.utf-?8(@.*)?\z/i
  GET = ENV.method(:[])
  private_constant :GET

  # To be made before the program can change anything.
  def initialize
    @booted = variables
    @renewed = ask("thaws") >= 0
  end

  # Notes whether the program has chosen a locale itself. To be called right before the freeze.
  def settle(report)
    return unless @renewed

    state = ask("state")
    @encoding = state & (Channel::IS_C | Channel::IS_UTF8)
    @renewed = (state & (Channel::HAS_OTHERS | Channel::IS_CHOSEN)).zero? && @encoding == expected
    report.add("renews", "locale") if @renewed
  end

  # Whether the environment names another locale than that of the boot.
  def other?
    variables != @booted
  end

  # Chooses the locale that the environment names. False where it has another encoding than the boot's. To be called before
  # the environment is changed as the program has changed it.
  def renew
    return true unless @renewed && other?

    state = ask("locale")
    state >= 0 && (state & (Channel::IS_C | Channel::IS_UTF8)) == @encoding && (state & Channel::HAS_OTHERS).zero?
  end

  private

  def variables
    VARIABLES.map { |name| GET.call(name) }
  end

  # By its name: the launcher, too, knows no more of it.
  def expected
    name = @booted.find { |value| !value.nil? && !value.empty? }
    return Channel::IS_C if [nil, "C", "POSIX"].include?(name)

    UTF8.match?(name) ? Channel::IS_UTF8 : nil
  end

  # Less than 0 where it cannot be done.
  def ask(question)
    Channel.call(Channel::RENEW, question)&.to_i || -1
  end
end

# frozen_string_literal: true

# The locale that Ruby takes from the environment when it starts. A start in another one of the same encoding renews it: then
# all strings of the image have the encodings that they would have. In a locale of another encoding each path would have
# another, those in $LOAD_PATH and in what was loaded from there; so an image is bound to the encoding.
#
# The freezer, in this same process, tells and sets it (crates/freezer sys/renewal.rs), as in process_attributes.rb.
class Locale
  NAME = "SNAPBOOT_RENEW"
  # See crates/freezer sys/renewal.rs.
  FIRST = 60
  IS_C = 1
  IS_UTF8 = 4
  HAS_OTHERS = 8
  IS_CHOSEN = 16
  VARIABLES = %w[LC_ALL LC_CTYPE LANG].freeze
  UTF8 = /\A[^.]*\.utf-?8(@.*)?\z/i
  SET = ENV.method(:[]=)
  GET = ENV.method(:[])
  private_constant :NAME, :FIRST, :SET, :GET

  # To be made before the program can change anything.
  def initialize
    @booted = variables
    @renewed = ask("thaws") >= 0
  end

  # Notes whether the program has chosen a locale itself. To be called right before the freeze.
  def settle(report)
    return unless @renewed

    state = ask("state")
    @encoding = state & (IS_C | IS_UTF8)
    @renewed = (state & (HAS_OTHERS | IS_CHOSEN)).zero? && @encoding == expected
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
    state >= 0 && (state & (IS_C | IS_UTF8)) == @encoding && (state & HAS_OTHERS).zero?
  end

  private

  def variables
    VARIABLES.map { |name| GET.call(name) }
  end

  # By its name: the launcher, too, knows no more of it.
  def expected
    name = @booted.find { |value| !value.nil? && !value.empty? }
    return IS_C if [nil, "C", "POSIX"].include?(name)

    UTF8.match?(name) ? IS_UTF8 : nil
  end

  def ask(question)
    SET.call(NAME, question)
    -1
  rescue SystemCallError => e
    e.errno - FIRST
  end
end

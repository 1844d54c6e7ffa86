# frozen_string_literal: true

# The current directory, for programs that ask for it while they boot and keep the answer: a thaw gives that string its new
# content.
#
# Who asks may also decide something by the answer, and nobody can see that. So an answer is taken for one that is only kept
# where each string that was given is still there, can be changed, and is found nowhere as a part of another text. Files that
# were looked for below the directory the command knows of.
class Folder
  def initialize
    @count = 0
    @answers = ObjectSpace::WeakMap.new
    @kept = []
  end

  # Somebody was told. +answer+: the very string.
  def told(answer)
    @count += 1
    @answers[answer] = true
  end

  # To be asked after a collection. Whether a thaw can give all that is kept another content.
  def kept?
    return false if @count.zero?

    answers = @answers.keys
    folder = Dir.pwd
    return false unless folder.ascii_only?

    # Nobody has only kept what is gone, and what is frozen or has another content by now is more than that.
    return false if answers.size < @count || answers.any? { |answer| answer.frozen? || answer != folder }

    # Who keeps the value of a variable means that.
    return false if ENV.any? { |name, value| !%w[PWD OLDPWD].include?(name) && value.include?(folder) }

    @kept = answers if derived(folder, answers).empty?
    !@kept.empty?
  end

  # Gives it the directory of this process. Raises SystemCallError where there is none.
  def renew
    return if @kept.empty?

    folder = Dir.pwd
    @kept.each { |answer| answer.replace(folder) }
  end

  private

  # Strings and patterns of which the folder is a part. Where something was loaded from below it, that has its path, too: who
  # keeps that path might mean where it lies, and not where it was started.
  def derived(folder, answers)
    # Before this makes strings of its own.
    strings = ObjectSpace.each_object(String).to_a
    own = [folder, *answers].to_h { |answer| [answer.__id__, true] }
    found = strings.select { |text| part?(text, folder) && !own.key?(text.__id__) }
    pattern = Regexp.escape(folder)
    found + ObjectSpace.each_object(Regexp).select { |candidate| part?(candidate.source, pattern) }
  end

  # Without a copy of the text: Ruby would have the two share their bytes from then on. An ASCII folder can be looked for in
  # any text.
  def part?(text, folder)
    Encoding.compatible?(text, folder) && text.include?(folder)
  end
end

# frozen_string_literal: true

# The current directory, for programs that read it while they boot and keep the answer: a thaw gives that string its new
# content.
#
# A reader may also decide by the answer, and nobody can see that. So an answer is taken for one that is only kept
# where each string that was given is still there, and all strings with the folder in them begin with it and can be changed.
# The command then boots the program once more in an empty folder whose names are unlike all others: so whatever is made of
# them is found, and what is kept for another reason (where something lies, what a variable says) is not. It compares what is
# kept, and what was looked for there.
class Folder
  # +control+: the control directory, which may lie below. +is_elsewhere+: whether this is the boot in a folder with names of
  # its own.
  def initialize(control, is_elsewhere)
    @control = control
    @is_elsewhere = is_elsewhere
    @start = current_hash
    @count = 0
    @answers = ObjectSpace::WeakMap.new
    @kept = []
  end

  # Somebody was told. +answer+: the very string.
  def told(answer)
    @count += 1
    @answers[answer] = true
  end

  # To be called after a collection. Whether a thaw can give all that is kept another content.
  def kept?
    # Elsewhere in the meantime, the program may have been told of either directory.
    return false if @count.zero? || current_hash != @start

    answers = @answers.keys
    folder = Dir.pwd
    return false unless folder.ascii_only?

    # Nobody has only kept what is gone, and what is frozen or has another content by now is more than that.
    return false if answers.size < @count || answers.any? { |answer| answer.frozen? || answer != folder }

    marks = @is_elsewhere ? folder.split("/").last(2) : [folder]
    @kept = kept(folder, marks)
    !@kept.empty?
  end

  # What there is of it, as far as it goes on behind the answer: Strings, in order.
  def rests
    @kept.map(&:last).sort
  end

  # Gives it the directory of this process. Raises SystemCallError where there is none.
  def renew
    return if @kept.empty?

    folder = Dir.pwd
    @kept.each { |text, rest| text.replace(rest.empty? ? folder : "#{folder.delete_suffix("/")}#{rest}") }
  end

  private

  # By which the current directory is known again: its name itself would be found. nil where it is gone.
  def current_hash
    Dir.pwd.hash
  rescue SystemCallError
    nil
  end

  # What is made of the folder, with the part that comes after it; nothing if any of it cannot be changed.
  def kept(folder, marks)
    # Before this makes strings of its own.
    strings = ObjectSpace.each_object(String).to_a
    own = [folder, *marks].to_h { |text| [text.__id__, true] }
    found = strings.select { |text| marks.any? { |mark| part?(text, mark) } && !own.key?(text.__id__) }
    found.reject! { |text| text == @control || below?(text, @control) } unless @is_elsewhere
    return [] if in_a_name?(marks) || found.any? { |text| text.frozen? || !(text == folder || below?(text, folder)) }

    found.map { |text| [text, text.byteslice(folder.bytesize..)] }
  end

  # Symbols and patterns cannot be changed.
  def in_a_name?(marks)
    patterns = marks.map { |mark| Regexp.escape(mark) }
    ObjectSpace.each_object(Regexp).any? { |candidate| patterns.any? { |pattern| part?(candidate.source, pattern) } } ||
      Symbol.all_symbols.any? { |symbol| marks.any? { |mark| part?(symbol.name, mark) } }
  end

  # Without a copy of the text: Ruby would have the two share their bytes from then on. An ASCII folder can be looked for in
  # any text.
  def part?(text, folder)
    Encoding.compatible?(text, folder) && text.include?(folder)
  end

  def below?(text, folder)
    Encoding.compatible?(text, folder) && text.start_with?(folder) && text.getbyte(folder.bytesize) == SLASH
  end
  SLASH = "/".ord
  private_constant :SLASH
end

# frozen_string_literal: true

# Tells the recorder of questions whose answer is only whether a file is there, and of what kind: an edit of the file leaves
# the answer as it was. The kernel is asked for the whole status each time. Without this, each file that an autoloader finds
# in a folder and does not load would count with its content.
class KindQuestions
  NAMES = {
    [File.singleton_class, FileTest.singleton_class] => %i[file? directory? exist? symlink?],
    [Dir.singleton_class] => %i[exist?],
    [File.singleton_class] => %i[ftype]
  }.freeze
  private_constant :NAMES

  def initialize
    @wrappers = Wrappers.new
  end

  # Starts to tell.
  def watch
    NAMES.each { |owners, names| owners.product(names) { |owner, name| watch_calls(owner, name) } }
  end

  # Stops, and restores the methods.
  def stop
    @wrappers.take_off
  end

  private

  def watch_calls(owner, name)
    @wrappers.wrap(owner, name) do |_, original, arguments, block|
      # Of another object Ruby would call a method, which may look at any file.
      next original.call(*arguments, &block) unless arguments.all?(String)

      begin
        Channel.call(Channel::KIND_ONLY, "1")
        original.call(*arguments, &block)
      ensure
        Channel.call(Channel::KIND_ONLY)
      end
    end
  end
end

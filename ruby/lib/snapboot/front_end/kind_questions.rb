# frozen_string_literal: true

# Tells the recorder of questions whose answer is only whether a file is there, and of what kind: after an edit of the file
# the answer is the same. The kernel is asked for the whole status each time, so without this each of these files would count
# with its content, as those that an autoloader finds in a folder and does not load.
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
      Channel.call(Channel::KIND_ONLY, "1")
      original.call(*arguments, &block)
    ensure
      Channel.call(Channel::KIND_ONLY)
    end
  end
end

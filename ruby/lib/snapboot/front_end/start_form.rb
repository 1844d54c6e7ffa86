# frozen_string_literal: true

# Whether the values of a start have a form that another start has shown to be harmless: see evidence.rb.
#
# The program was booted with two values of each fact, and came to the same with both, but for the values themselves. That
# says nothing of values of another kind: a library quotes a path with a blank, cuts one off that is long, follows a symbolic
# link, or leaves out what comes twice. Nor does it say anything of values that have to do with each other in
# another way: whether the directory lies below HOME, or HOME ends in the user's name. So only plain values are taken, and
# only where they are to each other as those in the image are. A value that is the one in the image was tried.
class StartForm
  FILE = %r{\A(?:/(?!\.{1,2}(?:/|\z))[A-Za-z0-9._-]+)+\z}n
  LONGEST_PATH = 200
  USER = /\A[A-Za-z0-9._-]{1,40}\z/n
  # The program may have put others in their places.
  REAL, STAT, IS_THERE = %i[realpath stat directory?].map { |name| File.method(name) }
  USER_ID = Process.method(:euid)
  private_constant :FILE, :LONGEST_PATH, :USER, :REAL, :STAT, :IS_THERE, :USER_ID

  # +image+: the values in the image by name, as bytes. To be made before the program can change anything.
  def initialize(image)
    @image = image
    @folders = image.keys.select { |name| name != :PATH && image[name].start_with?("/") }
    @is_there = (@folders - [:cwd]).to_h { |name| [name, there?(image[name])] }
  end

  # Why a start with these +values+ is not served; nil where it is. None of the names needs to be there.
  def refusal(values)
    changed = values.reject { |name, value| value == @image[name] }
    return if changed.empty?

    untried = changed.find { |name, value| !plain?(name, value) }
    return "#{untried.first} has a value that no other start was tried with" if untried
    return if relations(values) == relations(@image.slice(*values.keys)) && !newly_on_path?(values)

    "#{values.keys.join(", ")} have to do with each other in another way than in the boot"
  end

  private

  def plain?(name, value)
    return search_path?(value) if name == :PATH
    return USER.match?(value.to_s) unless @folders.include?(name)

    path?(value) && (name == :cwd || (there?(value) == @is_there[name] && (!@is_there[name] || ordinary?(value))))
  end

  def path?(text)
    !text.nil? && text.bytesize <= LONGEST_PATH && FILE.match?(text)
  end

  # Ruby drops what is empty at the end of what it splits.
  def search_path?(text)
    entries = text.to_s.split(":", -1)
    !entries.empty? && entries.all? { |entry| path?(entry) } && (entries.uniq == entries || repeats?)
  end

  def repeats?
    entries = @image[:PATH].split(":", -1)
    entries.uniq != entries
  end

  # RubyGems looks for HOME, say.
  def there?(folder)
    !folder.nil? && IS_THERE.call(folder)
  rescue ArgumentError
    false
  end

  # Whether a folder is no link and the user's own, as that of the other start was. That of the image is not looked at, as it
  # would have to stay so.
  def ordinary?(folder)
    REAL.call(folder).b == folder && STAT.call(folder).uid == USER_ID.call
  rescue SystemCallError
    false
  end

  # For each two of them: whether one is the other, lies below it, and has it somewhere in it.
  def relations(values)
    known = values.except(:PATH).reject { |_, value| value.nil? || value.empty? }
    known.to_a.permutation(2).to_h do |(name, value), (other, within)|
      [[name, other], [value == within, within.start_with?("#{value.delete_suffix("/")}/"), within.include?(value)]]
    end
  end

  # Whether a folder of the start is one of those of PATH, or above one, as it is not in the image.
  def newly_on_path?(values)
    @folders.any? { |name| on_path?(values[name], values[:PATH]) && !on_path?(@image[name], @image[:PATH]) }
  end

  def on_path?(folder, path)
    !folder.nil? && path.to_s.split(":").any? { |entry| "#{entry}/".start_with?("#{folder}/") }
  end
end

# frozen_string_literal: true

# Whether the values of a start have a form that another start has shown to be harmless: see evidence.rb.
#
# The program was booted with two values of each fact, and reached the same state except for the values themselves. That
# proves nothing about values of another form: a library may quote a path with a blank, truncate a long one, follow a
# symbolic link, or drop duplicates. Nor does it prove anything about values with other relations: the directory may lie
# below HOME, or HOME may end in the user's name. So only plain values are accepted, and only if they relate to each
# other as those in the image do. A value that equals the image's was tried.
class StartForm
  FILE = %r{\A(?:/(?!\.{1,2}(?:/|\z))[A-Za-z0-9._-]+)+\z}n
  LONGEST_PATH = 200
  USER = /\A[A-Za-z0-9._-]{1,40}\z/n
  # Taken early, since the program may replace these methods.
  REAL, STAT, IS_THERE = %i[realpath stat directory?].map { |name| File.method(name) }
  USER_ID = Process.method(:euid)
  private_constant :FILE, :LONGEST_PATH, :USER, :REAL, :STAT, :IS_THERE, :USER_ID

  # Create this before the program can change anything. +image+: the values in the image by name, as bytes.
  def initialize(image)
    @image = image
    @folders = image.keys.select { |name| name != :PATH && image[name].start_with?("/") }
    @is_there = (@folders - [:cwd]).to_h { |name| [name, there?(image[name])] }
  end

  # Returns the reason why a start with these +values+ is not served, or nil. Any name may be missing.
  def refusal(values)
    changed = values.reject { |name, value| value == @image[name] }
    return if changed.empty?

    untried = changed.find { |name, value| !plain?(name, value) }
    return "#{untried.first} has a value that no other start was tried with" if untried
    return if relations(values) == relations(@image.slice(*values.keys)) && !newly_on_path?(values)

    "#{values.keys.join(", ")} relate in another way than in the boot"
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

  # Ruby drops empty parts at the end of a string that it splits.
  def search_path?(text)
    entries = text.to_s.split(":", -1)
    !entries.empty? && entries.all? { |entry| path?(entry) } && (entries.uniq == entries || repeats?)
  end

  def repeats?
    entries = @image[:PATH].split(":", -1)
    entries.uniq != entries
  end

  # Whether a folder exists: RubyGems checks HOME, for example.
  def there?(folder)
    !folder.nil? && IS_THERE.call(folder)
  rescue ArgumentError
    false
  end

  # Whether a folder is not a link and belongs to the user, as that of the other start. The image's own folder is not
  # checked, since it would have to stay so.
  def ordinary?(folder)
    REAL.call(folder).b == folder && STAT.call(folder).uid == USER_ID.call
  rescue SystemCallError
    false
  end

  # Returns the relations of each two values: whether one equals the other, lies below it, or contains it.
  def relations(values)
    known = values.except(:PATH).reject { |_, value| value.nil? || value.empty? }
    known.to_a.permutation(2).to_h do |(name, value), (other, within)|
      [[name, other], [value == within, within.start_with?("#{value.delete_suffix("/")}/"), within.include?(value)]]
    end
  end

  # Whether a folder of the start is in PATH, or above a folder in it, unlike the image's.
  def newly_on_path?(values)
    @folders.any? { |name| on_path?(values[name], values[:PATH]) && !on_path?(@image[name], @image[:PATH]) }
  end

  def on_path?(folder, path)
    !folder.nil? && path.to_s.split(":").any? { |entry| "#{entry}/".start_with?("#{folder}/") }
  end
end

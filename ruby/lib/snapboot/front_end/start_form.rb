# frozen_string_literal: true

# Whether the values of a start have a form that another start has shown to be harmless: see evidence.rb.
#
# The program was booted with two values of each fact, and reached the same state except for the values themselves. That
# proves nothing about values of another form: a library may quote a path with a blank, truncate a long one, follow a
# symbolic link, or drop duplicates. Nor does it prove anything about values with other relations: the directory may lie
# below HOME, or HOME may end in the user's name. So only plain values are accepted, and only if they relate to each
# other as those in the image do, or not at all, as those of the other start. A value that equals the image's was tried.
# Boots in the forms of everyday starts (form_comparison.rb) add to what was tried.
class StartForm
  FILE = %r{\A(?:/(?!\.{1,2}(?:/|\z))[A-Za-z0-9._-]+)+\z}n
  LONGEST_PATH = 200
  USER = /\A[A-Za-z0-9._-]{1,40}\z/n
  # Taken early, since the program may replace these methods.
  REAL, STAT, IS_THERE = %i[realpath stat directory?].map { |name| File.method(name) }
  USER_ID = Process.method(:euid)
  TOP = "/"
  UNRELATED = [false] * 4
  private_constant :FILE, :LONGEST_PATH, :USER, :REAL, :STAT, :IS_THERE, :USER_ID, :TOP, :UNRELATED

  # Create this before the program can change anything. +image+: the values in the image by name, as bytes.
  def initialize(image)
    @image = image
    @folders = image.keys.select { |name| name != :PATH && image[name].start_with?("/") }
    @is_there = (@folders - [:cwd]).to_h { |name| [name, there?(image[name])] }
    @tried = {}
  end

  # Adds features of values, as #features returns them, with which the program was tried.
  def add_tried(features)
    features.each { |feature| @tried[feature] = true }
  end

  # Returns those features of values, as Strings, that a start may have only if they were tried.
  def features(values)
    tops = values.filter_map { |name, value| top(name) if value == TOP }
    folders = values.slice(*@folders - [:cwd]).select { |_, value| there?(value) && !ordinary?(value) }
    tops + folders.keys.map { |name| unusual(name) } + relations(values).map { |names, relation| related(names, relation) }
  end

  # Returns the reason why a start with these +values+ is not served, or nil. Any name may be missing.
  def refusal(values)
    changed = values.reject { |name, value| value == @image[name] }
    return if changed.empty?

    untried = changed.find { |name, value| !plain?(name, value) }
    return "#{untried.first} has a value that no other start was tried with" if untried
    return if relations_tried?(values, changed) && !newly_on_path?(values)

    "#{values.keys.join(", ")} relate in another way than in the boot"
  end

  private

  def plain?(name, value)
    return search_path?(value) if name == :PATH
    return USER.match?(value.to_s) unless @folders.include?(name)

    return false unless path?(value) || (value == TOP && @tried.key?(top(name)))

    return true if name == :cwd
    return false unless there?(value) == @is_there[name]

    !@is_there[name] || ordinary?(value) || @tried.key?(unusual(name))
  end

  def relations_tried?(values, changed)
    before = relations(@image.slice(*values.keys))
    relations(values).all? do |names, relation|
      names.none? { |name| changed.key?(name) } || [before[names], UNRELATED].include?(relation) ||
        @tried.key?(related(names, relation))
    end
  end

  def top(name)
    "#{name} /"
  end

  def unusual(name)
    "#{name} unusual"
  end

  def related(names, relation)
    "#{names.join(" ")} #{relation.join(" ")}"
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

  # Returns the relations of each two values: whether one equals the other, lies below it, contains it, or is the topmost
  # directory.
  def relations(values)
    known = values.except(:PATH).reject { |_, value| value.nil? || value.empty? }
    known.to_a.permutation(2).to_h do |(name, value), (other, within)|
      below = within.start_with?("#{value.delete_suffix("/")}/")
      [[name, other], [value == within, below, within.include?(value), [value, within].include?(TOP)]]
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

# frozen_string_literal: true

# What Ruby's objects look like in memory: the first two words of each, its flags and its class, and the rest of a String.
# Ruby cannot unfreeze a frozen object, give an object back the singleton methods that IO#reopen takes away, or say where
# the contents of a String lie. A thaw needs that for a few objects: the name and text of the main script, ARGV, standard
# streams, and strings that hold secrets or facts about the start (by crates/freezer ruby_text.rs). No other file knows this
# layout.
#
# `layout_known?` compares it with objects that Ruby has just made. Where it differs nothing is ever written: what needs it
# raises Unknown, and is refused, or left to an ordinary start.
module ObjectHeader
  # Raised where objects are not laid out as expected.
  class Unknown < StandardError
    def initialize
      super("cannot change frozen objects: objects are not laid out as expected in this Ruby (#{RUBY_DESCRIPTION})")
    end
  end

  # Flags (include/ruby/internal/value_type.h and fl_type.h, string.c); the last two are those of strings.
  TYPE = 0x1f
  STRING = 0x05
  FROZEN = 1 << 11
  OUTSIDE = 1 << 13
  UNIQUE = 1 << 29
  # Offsets of the class, and of the length and the pointer of a String whose contents lie outside of the object.
  CLASS_AT = 8
  LENGTH_AT = 16
  POINTER_AT = 24
  # Longer than a text that any CRuby embeds in its object (640 bytes); crates/installation lib.rs has it, too.
  LONG = 1024
  MEMORY = "/proc/self/mem"
  TO_S = Kernel.instance_method(:to_s)

  module_function

  # Whether objects of this Ruby are laid out as this file says. A thawed process knows it from its boot.
  def layout_known?
    @known = as_expected? unless defined?(@known)
    @known
  rescue SystemCallError, IOError, RangeError, TypeError
    @known = false # there is no such memory
  end

  # Returns the address of the object.
  def address(object)
    TO_S.bind_call(object)[/0x\h+(?=>\z)/].hex # the last: nameless classes show an address, too
  end

  # Yields the memory of this process as a file.
  def open_memory(&block)
    File.open(MEMORY, "r+b", &block)
  end

  # Calls the block, then restores the object's class, and so its singleton methods. Raises Unknown.
  def keep_class(object)
    raise Unknown unless layout_known?

    own = object.singleton_class # kept alive by this reference
    at = address(object) + CLASS_AT
    open_memory do |memory|
      before = memory.pread(8, at)
      yield
      memory.pwrite(before, at)
    end
    own
  end

  # Unfreezes an object. Raises Unknown.
  def thaw(object)
    raise Unknown unless layout_known?

    open_memory { |memory| memory.pwrite([flags(object, memory) & ~FROZEN].pack("Q"), address(object)) }
    raise Unknown if object.frozen?
  end

  # Whether Ruby finds this String by its contents. Needs a known layout.
  def unique?(text)
    open_memory { |memory| flags(text, memory).anybits?(UNIQUE) }
  end

  # Returns the address of a String's contents, which copies of a long one share; nil if they lie in the object. Needs a
  # known layout.
  def contents(text)
    open_memory { |memory| word(memory, address(text) + POINTER_AT) if flags(text, memory).anybits?(OUTSIDE) }
  end

  def flags(object, memory)
    word(memory, address(object))
  end

  def word(memory, at)
    memory.pread(8, at).unpack1("Q")
  end

  # Compares each field and each flag with what is known of new strings.
  def as_expected?
    short = String.new("short")
    long = String.new(capacity: 8 * LONG) << ("long" * LONG) # with contents of its own: a copy has one more flag
    open_memory do |memory|
      marked?(memory, short, 0) && marked?(memory, long, OUTSIDE) &&
        marked?(memory, short.dup.freeze, FROZEN) && marked?(memory, -"unique #{address(short)}", FROZEN | UNIQUE) &&
        word(memory, address(short) + CLASS_AT) == address(String) && pointer?(memory, long)
    end
  end

  def marked?(memory, text, expected)
    flags(text, memory) & (TYPE | FROZEN | OUTSIDE | UNIQUE) == STRING | expected
  end

  def pointer?(memory, text)
    at = address(text)
    word(memory, at + LENGTH_AT) == text.bytesize && memory.pread(text.bytesize, word(memory, at + POINTER_AT)) == text
  end

  private_class_method :flags, :word, :as_expected?, :marked?, :pointer?
end

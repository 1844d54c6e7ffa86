# frozen_string_literal: true

# What every case of the table starts with.

DIR = File.expand_path(__dir__)
LOADED_BEFORE = $LOADED_FEATURES.dup

# Prints what the block returns, or raises.
def attempt
  puts "  -> #{yield.inspect}"
rescue StandardError, ScriptError => e
  puts "  -> #{e.class}: #{e.message.lines.first.to_s.chomp}#{" | #{e.path.inspect}" if e.respond_to?(:path)}"
end

# Prints the label and what the block returns, or raises, whatever bytes that is made of.
def check(label)
  puts "#{label} => #{yield.inspect}"
rescue StandardError, ScriptError => e
  message = e.message.b.lines.first.to_s.chomp.gsub(DIR.b, "DIR")
  path = " | #{e.path.inspect}" if e.respond_to?(:path) && e.path
  puts "#{label} => #{e.class}: #{message.inspect}#{path}"
end

# Requires each, and prints what comes of it.
def show(*names)
  names.each do |name|
    puts "require #{name.is_a?(String) ? name : name.class}"
    attempt { require name }
  end
end

# Prints what is listed as loaded, of the case's own files and by name alone.
def features
  own = ($LOADED_FEATURES - LOADED_BEFORE).grep(%r{\A#{Regexp.escape(DIR)}/|\A[^/]*\z})
  puts "features #{own.join(" ")}"
end

# These lines of a backtrace without those of the runtime, RubyGems and Snapboot: nor those of require itself, which CRuby
# shows where it is called, that is inside of RubyGems where there is that.
def frames(lines)
  own = lines.grep_v(%r{<internal:|/rubygems/|org/jruby/|/snapboot/|(in [`'](Kernel[#.]|block in )?|:)require'?\z})
  own.map { |line| line.delete_prefix("./").delete_prefix("#{DIR}/") }.join(" < ")
end

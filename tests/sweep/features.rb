# frozen_string_literal: true

# Lists every feature of the standard library and of the gems that are installed, by the name that it is required by.
folders = $LOAD_PATH + Gem::Specification.flat_map(&:full_require_paths)
files = folders.uniq.flat_map { |folder| Dir.glob("**/*.{rb,so}", base: folder) }.uniq
sources = files.grep(/\.rb\z/).to_h { |file| [file.delete_suffix(".rb"), true] }
# A library called like a source is reached with its suffix only.
libraries = files.grep(/\.so\z/).map { |file| sources[file.delete_suffix(".so")] ? file : file.delete_suffix(".so") }
puts (sources.keys + libraries).sort

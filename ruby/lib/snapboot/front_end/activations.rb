# frozen_string_literal: true

# Finds gems that a program activates while it runs, as RubyGems does when their first feature is required.
#
# Activating a gem early makes no difference if none of its features has the name of a feature found elsewhere, since
# `require` then finds the same file before and after, and if RubyGems would choose no other version: see Learnt.
class Activations
  # Files that RubyGems writes beside the extensions of each gem, always with the same names.
  BUILD_FILES = ["gem.build_complete", "gem_make.out", "mkmf.log"].freeze

  # Remembers the gems that are active now.
  def initialize
    @before = active.keys
  end

  # Returns the gems activated since that share no feature names: "NAME VERSION" of each, in that order.
  def early
    active.except(*@before).filter_map { |name, spec| "#{name} #{spec.version}" if alone?(spec) }
  end

  private

  def active
    defined?(Gem.loaded_specs) ? Gem.loaded_specs.dup : {}
  end

  def alone?(spec)
    folders = spec.full_require_paths
    others = $LOAD_PATH.map { |folder| File.expand_path(folder) } - folders
    folders.product(others).none? { |own, other| share?(own, other) }
  end

  # Whether the folders have a feature of the same name.
  def share?(own, other)
    (entries(own) & entries(other)).any? do |name|
      !name.end_with?("/") || share?("#{own}/#{name}", "#{other}/#{name}")
    end
  end

  # Returns the contents of a folder under the names for `require`; folders end with a slash.
  def entries(folder)
    @entries ||= {}
    @entries[folder] ||= (Dir.children(folder) - BUILD_FILES).map do |name|
      File.directory?("#{folder}/#{name}") ? "#{name}/" : name.sub(/\.(rb|so)\z/, "")
    end
  rescue SystemCallError
    []
  end
end

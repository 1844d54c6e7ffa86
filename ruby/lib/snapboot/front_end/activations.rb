# frozen_string_literal: true

# Gems that a program activates while it goes on, as RubyGems does when the first feature of one is required.
#
# To activate one before anybody asks makes no difference where nothing in it has the name of a feature that is found
# elsewhere, since whoever requires that gets the same file before and after, and where RubyGems would take no other version:
# see Learnt.
class Activations
  # What RubyGems writes beside the extensions that it has built, for each gem under the same names.
  BUILD_FILES = ["gem.build_complete", "gem_make.out", "mkmf.log"].freeze

  # Those that are active now.
  def initialize
    @before = active.keys
  end

  # Those that were activated since, and have no such names: "NAME VERSION" of each, in that order.
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

  # Whether a feature of one folder has the name of one in the other.
  def share?(own, other)
    (entries(own) & entries(other)).any? do |name|
      !name.end_with?("/") || share?("#{own}/#{name}", "#{other}/#{name}")
    end
  end

  # What is in a folder, as `require` names it; folders with a slash behind their name.
  def entries(folder)
    @entries ||= {}
    @entries[folder] ||= (Dir.children(folder) - BUILD_FILES).map do |name|
      File.directory?("#{folder}/#{name}") ? "#{name}/" : name.sub(/\.(rb|so)\z/, "")
    end
  rescue SystemCallError
    []
  end
end

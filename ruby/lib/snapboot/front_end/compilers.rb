# frozen_string_literal: true

# Ruby's just-in-time compilers, and which of them leave code that an image can hold.
class Compilers
  # The first version whose YJIT can be frozen: see YJIT in crates/runtime jit.rs.
  YJIT_SINCE = "3.3"
  NAMES = %i[YJIT RJIT MJIT].freeze
  # An option that enables YJIT.
  YJIT_OPTION = /\A--(?:enable[-=](?:\w+,)*)?y?jit\b/

  # Returns why this process cannot be frozen now; nil if it can. YJIT's code lies in anonymous memory, and so do the tables
  # of its assumptions. MJIT compiles with processes and files, and RJIT is untested.
  def self.refusal
    name = NAMES.find { |it| RubyVM.const_defined?(it) && RubyVM.const_get(it).enabled? }
    return if name.nil? || (name == :YJIT && RUBY_VERSION >= YJIT_SINCE)

    "#{name} of CRuby #{RUBY_VERSION} is on, and its code cannot be frozen: only YJIT's can, from CRuby #{YJIT_SINCE} on. " \
      "Turn it off."
  end

  # Returns why each start of this Ruby prints a warning: it has no YJIT, warns about an option for it, and goes on. nil if
  # it does not. +options+: the interpreter's.
  def self.warning(options)
    return if RubyVM.const_defined?(:YJIT)

    word = (options + ENV.fetch("RUBYOPT", "").split).find { |it| it.match?(YJIT_OPTION) }
    word && "this Ruby was built without YJIT, and warns of #{word} at each start, which an image would not. Take it out."
  end
end

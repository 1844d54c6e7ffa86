# frozen_string_literal: true

# Ruby's just-in-time compilers, and which of them an image can hold the code of.
class Compilers
  # The first version whose YJIT can be frozen: see YJIT in crates/runtime jit.rs.
  YJIT_SINCE = "3.3"
  NAMES = %i[YJIT RJIT MJIT].freeze
  # An option that asks for YJIT.
  YJIT_OPTION = /\A--(?:enable[-=](?:\w+,)*)?y?jit\b/

  # Why this process cannot be frozen now; nil when it can. YJIT's code lies in anonymous memory, as do the tables that say
  # what it relies on. MJIT compiles with processes and files, and nobody has tried RJIT.
  def self.refusal
    name = NAMES.find { |it| RubyVM.const_defined?(it) && RubyVM.const_get(it).enabled? }
    return if name.nil? || (name == :YJIT && RUBY_VERSION >= YJIT_SINCE)

    "#{name} of CRuby #{RUBY_VERSION} is on, and its code cannot be frozen: only YJIT's can, from CRuby #{YJIT_SINCE} on. " \
      "Turn it off."
  end

  # Why no start of this Ruby is quiet: it has no YJIT, warns of an option for it, and goes on. nil when it does not.
  # +options+: the interpreter's.
  def self.warning(options)
    return if RubyVM.const_defined?(:YJIT)

    word = (options + ENV.fetch("RUBYOPT", "").split).find { |it| it.match?(YJIT_OPTION) }
    word && "this Ruby was built without YJIT, and warns of #{word} at each start, which an image would not. Take it out."
  end
end

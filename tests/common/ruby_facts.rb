# frozen_string_literal: true

# Prints facts about Ruby sources as JSON, from their syntax trees: the names of all methods, all literals of text, and each
# assignment of an attribute with the names that its value consists of.

require "json"
require "ripper"

# The facts about one source.
class Facts
  NAMES = %i[@ident @const @kw @op @backtick].freeze

  attr_reader :functions, :literals, :assignments

  def initialize(source)
    @functions = []
    @literals = []
    @assignments = []
    walk(Ripper.sexp(source) || raise("it does not parse"))
  end

  def to_json(*) = { functions: functions, literals: literals, assignments: assignments }.to_json

  private

  def walk(node)
    return unless node.is_a?(Array)

    case node
    in [:def, *] | [:defs, *] then functions << node.grep(Array).reverse.find { |part| NAMES.include?(part[0]) }[1]
    in [:@tstring_content, text, _] then literals << text
    in [:assign, [:field, _, _, [_, name, _]], value] then assignments << [name, names(value)]
    else nil
    end
    node.each { |part| walk(part) }
  end

  def names(node)
    case node
    in [:@ident | :@const, name, _] then [name]
    in Array then node.flat_map { |part| names(part) }
    else []
    end
  end
end

puts ARGV.to_h { |path| [path, Facts.new(File.read(path))] }.to_json

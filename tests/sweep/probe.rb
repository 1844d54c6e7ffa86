# frozen_string_literal: true

# Requires one feature and writes down what can be seen of that: `ruby probe.rb OUTCOME FEATURE`. Nothing is loaded for it,
# no autoload is set off, and nothing that the feature may have redefined is called. Lines of OUTCOME are "kind<tab>text".
outcome, feature = ARGV.shift(2)

result =
  begin
    require(feature).inspect
  rescue Exception => e # rubocop:disable Lint/RescueException -- an exit is an outcome, too
    "#{e.class}: #{e.message}"
  end

look = proc do |name, object, *arguments|
  (@looks ||= {})[name] ||= Module.instance_method(name)
  @looks[name].bind_call(object, *arguments)
end

lines = ["result\t#{result}"]
lines.concat($LOADED_FEATURES.map { |path| "feature\t#{path}" })
lines.concat(global_variables.sort.map { |name| "global\t#{name}" })

# Every module that can be reached by its name, with what it defines itself.
waiting = [["Object", Object]]
seen = {}.compare_by_identity
while (path, owner = waiting.shift)
  next if seen[owner]

  seen[owner] = true
  methods = look[:instance_methods, owner, false] + look[:private_instance_methods, owner, false]
  methods = methods.grep_v(/\Asnapboot_|_by_search\z/) # the archive's own
  lines << "methods\t#{path}: #{methods.sort.join(" ")}"
  lines << "ancestors\t#{path}: #{look[:ancestors, owner].map { |ancestor| look[:name, ancestor] }.join(" ")}"
  look[:constants, owner, false].sort.each do |name|
    next if name == :Snapboot

    inner = owner.equal?(Object) ? name.to_s : "#{path}::#{name}"
    file = look[:autoload?, owner, name, false]
    # Where its file is loaded already, an autoload may be left that leads to nothing.
    state = " autoload #{file}" if file
    state ||= " undefined" unless look[:const_defined?, owner, name, false]
    lines << "constant\t#{inner}#{state}"
    next if state

    value = look[:const_get, owner, name, false]
    case value # `is_a?` may have been redefined, or be missing
    when Module then waiting << [inner, value]
    end
  end
end

counters = defined?(Snapboot::Archive) ? Snapboot::Archive.counters : {}
lines.concat(counters.map { |event, count| "event\t#{event} #{count}" })
File.binwrite(outcome, lines.map { |line| line.b.gsub("\n", "\\n") }.join("\n"))

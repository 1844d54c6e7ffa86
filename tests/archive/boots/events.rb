# frozen_string_literal: true

# Loaded after snapboot/setup: writes what the archive did into SNAPBOOT_TEST_EVENTS, a line for each event and kind.

counts = Hash.new(0)
Snapboot::Archive.on_event { |event, kind, _name| counts["#{kind} #{event}"] += 1 }
at_exit do
  counts["enabled"] = 1 if Snapboot::Archive.enabled?
  File.write(ENV.fetch("SNAPBOOT_TEST_EVENTS"), counts.map { |what, count| "#{what}\t#{count}\n" }.join)
end

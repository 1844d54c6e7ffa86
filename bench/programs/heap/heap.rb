# frozen_string_literal: true

# A heap of a chosen size, made of what programs hold: records with a number, a name, some tags and a text.

def resident_megabytes
  Integer(File.read("/proc/self/statm").split[1]) * 4096 / 1e6
end

# Records enough to let this process grow by so many megabytes.
def build_heap(megabytes)
  goal = resident_megabytes + megabytes
  records = []
  while resident_megabytes < goal
    1000.times do
      number = records.size
      tags = ["tag #{number % 17}", "tag #{number % 19}"]
      records << { id: number, name: "record #{number}", tags: tags, text: number.to_s.ljust(500) }
    end
  end
  records
end

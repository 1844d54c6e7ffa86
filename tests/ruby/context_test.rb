# frozen_string_literal: true

require "pty"
require_relative "support/programs"

# What differs from process to process must be that of the new one.
class ContextTest < SameResult
  def test_environment
    same_code "p ENV.to_h.reject { |k, _| k == '_' }, ENV['A'], `env | grep -c SNAPBOOT`",
              environment: { "A" => "b", "EMPTY" => "", "TZ" => "Asia/Tokyo" }
  end

  def test_changes_of_the_environment_made_by_a_preload_are_made_again
    file("boot.rb", "ENV['SET'] = 'x'; ENV['PATH'] = \"/added:\#{ENV['PATH']}\"; ENV.delete('LANG')")
    code = "p ENV['SET'], ENV['PATH'].start_with?('/added:/'), ENV['LANG']"
    shown, = thawed([], "-e", code, preload: ["./boot"], environment: { "LANG" => "C.UTF-8" })
    assert_equal "\"x\"\ntrue\nnil\n", shown.output
  end

  def test_standard_streams
    same_code "p $stdin.read, $stdin.eof?, $stdin.lineno, STDIN.equal?($stdin), STDOUT.equal?($stdout)", input: "a\nb\n"
    same_code "while (line = gets); p line, $., $<.lineno; end", input: "a\nb\n"
    same_code "p STDIN.tty?, STDOUT.tty?, STDOUT.sync, STDERR.sync, [STDIN, STDOUT, STDERR].map { |s| s.fcntl(1) }"
    same_code "$stdout.sync = true; print 1; system 'echo 2'; $stdout.print 3; STDOUT.write 4"
    same_code "p ARGF.read, ARGF.filename", file("data", "text")
  end

  def test_terminal
    code = "p [STDIN, STDOUT, STDERR].map(&:tty?), STDOUT.sync; print 'a'; system 'printf b'; puts; system 'printf c'; " \
           "puts 'd'; STDOUT.write 'e'; p gets, STDIN.winsize rescue p $!.class"
    programs = Programs.new([], ["-e", code], directory: @directory)
    programs.define_singleton_method(:run) do |*words, environment: {}, **how|
      next super(*words, environment: environment, **how) if words[1] == "freeze"

      PTY.spawn(environment, *words, chdir: @directory) do |terminal, keyboard, pid|
        shown = +""
        loop do
          shown << terminal.readpartial(4096)
          keyboard.puts "typed" if shown.end_with?("e") # the terminal's echo comes in a certain place
        end
      rescue Errno::EIO
        return Shown.new(shown, "", Process.wait2(pid)[1].exitstatus, nil)
      end
    end
    ordinary = programs.ordinary
    assert_match(/true, true, true/, ordinary.output)
    assert_equal ordinary, programs.thawed
  end

  def test_ignored_signals
    code = "p %w[INT HUP TERM QUIT].map { |s| trap(s, 'DEFAULT') }; trap(:TERM) { p 1 }; Process.kill(:TERM, $$); " \
           "sleep 0.01; Process.kill(:HUP, $$); sleep 0.01; p ENV.key?('SNAPBOOT_IGNORED')"
    file("ignoring.sh", "trap '' HUP INT TERM\nexec \"$@\"\n")
    programs = Programs.new([], ["-e", code], directory: @directory)
    programs.define_singleton_method(:run) do |*words, **how|
      words = ["sh", "ignoring.sh", *words] unless words[1] == "freeze"
      super(*words, **how)
    end
    assert_equal programs.ordinary.to_h, programs.thawed.to_h
  end

  def test_closed_standard_streams
    ["<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"].each do |closing|
      code = "File.write('out', [STDIN, STDOUT, STDERR].map { |s| [s.fileno, (s.fcntl(1) rescue $!.class)] }.inspect)"
      programs = Programs.new([], ["-e", code], directory: @directory)
      programs.define_singleton_method(:run) do |*words, **how|
        words = ["sh", "-c", "exec \"$@\" #{closing}", "sh", *words] if words.include?("-e") || SNAPBOOT.nil?
        super(*words, **how)
      end
      left = %i[ordinary thawed].map do |way|
        programs.public_send(way)
        File.read("#{@directory}/out")
      end
      assert_equal(*left) if SNAPBOOT
    end
  end

  def test_signals
    same_code "p %w[INT TERM HUP CHLD PIPE USR1].map { |s| trap(s) { } }; Process.kill(:USR1, $$); sleep 0.01"
  end

  def test_time_zone
    file("boot.rb", "Time.now.localtime")
    code = "t = Time.at(0); p t.hour, t.zone, Time.now.utc_offset"
    shown, = thawed([], "-e", code, preload: ["./boot"], environment: { "TZ" => "Asia/Tokyo" })
    assert_equal "9\n\"JST\"\n32400\n", shown.output
  end

  def test_title_and_directory
    same_code "$0 = 'a title'; p $0, $PROGRAM_NAME, Process.argv0, __FILE__; Process.setproctitle('b'); p $0, Dir.pwd"
    same_code "p Process.clock_gettime(Process::CLOCK_MONOTONIC) > 0, $$ == Process.pid, Process.ppid > 0, $?"
  end

  def test_random_numbers_of_a_preload
    file("boot.rb", "SEEDED = Random.new(42); SEEDED.rand; CHOSEN = Random.new; FIRST = CHOSEN.dup.rand")
    shown, = thawed([], "-e", "p SEEDED.rand == Random.new(42).tap(&:rand).rand, CHOSEN.rand == FIRST", preload: ["./boot"])
    assert_equal "true\nfalse\n", shown.output
  end

  def test_work_after_the_thaw
    same_code <<~RUBY
      require "timeout"
      require "open3"
      p (Timeout.timeout(0.02) { sleep } rescue $!.class)
      p Open3.capture2("cat", stdin_data: "x")[0], Thread.new { 1 }.value, Fiber.new { 2 }.resume
      GC.start; GC.compact; p GC.stress
      p ObjectSpace.each_object(Class).count > 100, 3.times.map { |i| Process.fork { exit i }; Process.wait2[1].exitstatus }
      p Queue.new.tap { |q| Thread.new { q << 1 } }.pop, Comparable, rand != rand, `echo 3`
    RUBY
  end
end

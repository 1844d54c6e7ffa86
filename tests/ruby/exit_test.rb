# frozen_string_literal: true

require_relative "support/programs"

# How a program ends: nothing observable may be lost.
class ExitTest < SameResult
  {
    normal: "puts 1",
    without_newline: "print 'x' * 100_000",
    exit_status: "exit 3",
    exit_true: "exit true",
    exit_false: "exit false",
    exit_now: "at_exit { puts 1 }; print 2; exit! 4",
    abort: "abort",
    abort_with_message: "abort 'message'",
    system_exit: "raise SystemExit",
    system_exit_with_cause: "begin; raise 'a'; rescue StandardError; exit 5; end",
    uncaught: "raise 'message'",
    uncaught_with_cause: "begin; raise 'a'; rescue StandardError; raise TypeError, 'b'; end",
    empty_message: "raise ''",
    thrown: "throw :nothing",
    local_jump: "proc { return }.call; puts 1",
    name_error: "no_such_name",
    did_you_mean: "[].lenght",
    recursion: "def a = a; begin; a; rescue SystemStackError => e; puts e.message; end",
    at_exit_order: "at_exit { puts 1 }; at_exit { puts 2 }; END { puts 3 }; puts 4",
    at_exit_nested: "at_exit { puts 1; at_exit { puts 2 } }; at_exit { puts 3 }",
    at_exit_raises: "at_exit { puts 1 }; at_exit { raise 'a' }; at_exit { puts 2 }",
    at_exit_exits: "at_exit { p $!; exit 7 }; at_exit { p $! }; exit 6",
    at_exit_overrides_error: "at_exit { exit 7 }; raise 'a'",
    at_exit_after_error: "at_exit { p $! }; raise 'a'",
    interrupt: "raise Interrupt",
    interrupt_from_outside: "Process.kill(:INT, $$); sleep",
    terminated: "at_exit { puts 1 }; Process.kill(:TERM, $$); sleep",
    killed: "print 1; $stdout.flush; Process.kill(:KILL, $$); sleep",
    signal_exception: "raise SignalException, 'HUP'",
    trapped: "trap(:TERM) { puts 1; exit 3 }; Process.kill(:TERM, $$); sleep",
    trap_exit: "trap(:EXIT) { puts 1 }; at_exit { puts 2 }",
    file_left_open: "File.open('out', 'w').write('data'); at_exit { p File.size('out') }",
    reassigned_stdout: "$stdout = File.open('out', 'w'); puts 1",
    stdout_replaced_by_object: "o = Object.new; def o.write(*a) = STDOUT.write(*a).tap { STDOUT.write('!') }; " \
                               "$stdout = o; puts 1",
    closed_stdout: "$stdout.close",
    finalizer: "ObjectSpace.define_finalizer(Object.new, proc { puts 'finalized' })",
    finalizer_of_a_kept_object: "X = Object.new; ObjectSpace.define_finalizer(X, proc { puts 'finalized' }); exit 3",
    finalizer_refused: "begin; ObjectSpace.define_finalizer(1, proc {}); rescue ArgumentError => e; p e; end",
    tempfile: "require 'tempfile'; t = Tempfile.new('x', '.'); t.write 1; p Dir.children('.').size",
    thread_with_ensure: "q = Queue.new; Thread.new { begin; q << 1; sleep; ensure; puts 'ensured'; end }; q.pop",
    thread_raises: "t = Thread.new { Thread.current.report_on_exception = false; raise 'a' }; t.join",
    thread_aborts: "Thread.abort_on_exception = true; Thread.new { exit 9 }; sleep",
    main_thread_killed: "Thread.main.kill",
    fork: "fork { puts 1; exit 3 }; Process.wait; p $?.exitstatus; puts 2",
    fork_at_exit: "at_exit { puts $$ == PID }; PID = $$; fork {}; Process.wait",
    exec: "print 1; $stdout.flush; exec 'echo 2'",
    system: "system 'echo 1; exit 3'; p $?.exitstatus, `echo 2`",
    popen: "p IO.popen('cat', 'r+') { |io| io.write 1; io.close_write; io.read }",
    another_object_for_stdout: "X = IO.for_fd(1, 'w'); X.print 1; $stdout.puts 2",
    another_new_object_for_stdout: "X = IO.new(1, 'w', external_encoding: 'utf-8'); X.print 1; exit 3",
    bad_descriptor: "IO.new(99)",
    fork_from_a_thread: "Thread.new { fork { print 1; exit 2 } }.join; Process.wait; p $?.exitstatus",
    popen_left_open: "IO.popen('cat >out', 'w').write('x' * 100); at_exit { p 1 }",
    warn: "warn 'a'; $stderr.print 'b'",
    verbose_teardown: "$VERBOSE = true; x = 1",
    fiber: "f = Fiber.new { begin; Fiber.yield 1; ensure; puts 'never'; end }; p f.resume",
    ractor: "$VERBOSE = nil; p Ractor.new { 1 }.take",
    broken_pipe: "r, w = IO.pipe; $stdout.reopen(w); r.close; puts 1",
    minitest: "require 'minitest/autorun'; Minitest.seed = 1; class T < Minitest::Test; def test_a = assert(false); end; " \
              "Minitest.after_run { puts 'after' }; $stdout = StringIO.new"
  }.each do |name, code|
    define_method(:"test_#{name}") do
      same_code(code)
      ordinary = left_behind(code, &:ordinary)
      assert_equal ordinary, left_behind(code, &:thawed)
    end
  end

  # A script rather than code; ends by an exception in every kind of frame.
  def test_script
    same [], file("fails.rb", "class A; def b = [1].each { |x| raise x.to_s }; end\nA.new.b\n")
  end

  def test_the_quick_end_is_possible_where_ruby_has_loaded_its_own_files_only
    assert_equal "true\n", quick_end("true")
    assert_equal "false\n", quick_end("true", "-rtempfile")
  end

  def test_the_end_is_left_to_a_compiler_that_tells_what_it_did
    skip "this Ruby has no YJIT of 3.3 or later" unless RubyVM.const_defined?(:YJIT) && RUBY_VERSION >= "3.3"
    assert_equal "true\n", quick_end("RubyVM::YJIT.enabled?", "--yjit")
    assert_equal "false\n", quick_end("RubyVM::YJIT.enabled?", "--yjit", "--yjit-stats=quiet")
  end

  # As long as it sleeps: deeper down there may be an `ensure`.
  def test_the_thread_that_rails_has_for_idle_connections_may_be_cut_off
    place = "#{@directory}/active_record/connection_adapters/abstract/connection_pool"
    FileUtils.mkdir_p(place)
    File.write("#{place}/reaper.rb", "SLEEPS = Thread.new { sleep }\nDEEPER = Thread.new { [1].each { sleep } }\n")
    sources = %w[ruby/lib/snapboot/front_end/recipes.rb ruby/lib/snapboot/front_end/lost_threads.rb
                 recipes/activerecord/ruby.rb]
    code = <<~RUBY
      #{sources.map { |path| "#{ROOT}/#{path}" }}.push("#{place}/reaper.rb").each { |path| load path }
      threads = [SLEEPS, DEEPER, Thread.new { sleep }]
      Thread.pass until threads.all?(&:stop?)
      p threads.map { |thread| Recipes.may_be_cut_off?(thread) }
    RUBY
    assert_equal "[true, false, false]\n", Open3.capture2(RbConfig.ruby, "-e", code).first
  end

  private

  # Whether a process with these options may end at once, and the condition holds in it, as it prints that.
  def quick_end(condition, *options)
    code = "load '#{ROOT}/ruby/lib/snapboot/front_end/exit.rb'\n" \
           "p #{condition} && Exit.new('').instance_variable_get(:@possible)"
    Open3.capture2(RbConfig.ruby, *options, "-e", code).first
  end

  # The files that the program leaves, with their content.
  def left_behind(code)
    FileUtils.rm_rf(Dir.glob("#{@directory}/*"))
    yield Programs.new([], ["-e", code], directory: @directory)
    sleep 0.05 if code.include?("popen_left_open")
    Dir.glob("#{@directory}/*").to_h { |path| [File.basename(path), File.read(path)] }
  end
end

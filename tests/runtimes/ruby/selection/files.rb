# frozen_string_literal: true

# rubocop:disable Security/IoMethods, Lint/IncompatibleIoSelectWithFiberScheduler

# Files, directories, pipes, sockets, terminals.

require "fileutils"
require "find"
require "io/console"
require "io/nonblock"
require "io/wait"
require "net/http"
require "pathname"
require "pty"
require "socket"
require "tempfile"
require "tmpdir"
require "webrick"

# Files and directories.
class FilesTest < Minitest::Test
  def setup
    @place = Dir.mktmpdir
  end

  def teardown
    FileUtils.remove_entry(@place)
  end

  def test_read_and_write
    path = "#{@place}/file"
    assert_equal(6, File.write(path, "é\nab\n"))
    assert_equal(%W[é\n ab\n], File.readlines(path))
    assert_equal(Encoding.default_external, File.read(path).encoding)
    File.open(path, "a") { |file| file << "end" }
    assert_equal("end", IO.binread(path)[-3..])
    assert_equal("ab", File.open(path) { |file| file.seek(3) && file.read(2) })
  end

  def test_buffers_are_flushed
    path = "#{@place}/file"
    file = File.open(path, "w")
    file.write("buffered")
    assert_equal("", File.read(path))
    file.flush
    assert_equal("buffered", File.read(path))
  ensure
    file.close
  end

  def test_unclosed_file_is_written
    path = "#{@place}/file"
    make = -> { File.write(path, "unclosed") }
    50.times { make.call }
    GC.start
    assert_equal("unclosed", File.read(path))
  end

  def test_encodings
    path = "#{@place}/file"
    File.write(path, "é", encoding: "ISO-8859-1")
    assert_equal("\xE9".b, File.binread(path))
    assert_equal("é", File.read(path, encoding: "ISO-8859-1:UTF-8"))
  end

  def test_stat
    path = "#{@place}/file"
    File.write(path, "x" * 10)
    File.chmod(0o600, path)
    File.utime(1, 2, path)
    stat = File.stat(path)
    assert_equal([10, 0o600, 2, true], [stat.size, stat.mode & 0o777, stat.mtime.to_i, stat.file?])
    File.symlink(path, "#{path}.link")
    assert_equal(path, File.readlink("#{path}.link"))
    assert_equal(File.realpath(path), File.realpath("#{path}.link"))
    assert_raises(Errno::ENOENT) { File.stat("#{path}.absent") }
  end

  def test_umask
    was = File.umask(0o077)
    File.write("#{@place}/private", "")
    assert_equal(0o600, File.stat("#{@place}/private").mode & 0o777)
  ensure
    File.umask(was)
  end

  def test_directories
    FileUtils.mkdir_p("#{@place}/a/b")
    FileUtils.touch(["#{@place}/a/1.rb", "#{@place}/a/b/2.rb"])
    assert_equal(%w[a/1.rb a/b/2.rb], Dir.glob("**/*.rb", base: @place).sort)
    assert_equal(%w[1.rb b], Dir.children("#{@place}/a").sort)
    assert_equal(5, Find.find(@place).count)
    Dir.chdir(@place) { assert_equal(File.realpath(@place), Dir.pwd) }
    assert_raises(Errno::ENOTEMPTY) { Dir.rmdir("#{@place}/a") }
  end

  def test_locks
    File.open("#{@place}/lock", "w") do |file|
      assert_equal(0, file.flock(File::LOCK_EX))
      refute(File.open("#{@place}/lock") { |other| other.flock(File::LOCK_EX | File::LOCK_NB) })
    end
  end

  def test_tempfile
    path = Tempfile.create { |file| file.write("x") && file.path }
    refute_path_exists(path)
    file = Tempfile.new
    file.close!
    assert_nil(file.path)
    refute_equal(Tempfile.new.path, Tempfile.new.path)
  end

  def test_pathname
    assert_equal("/a/c", Pathname("/a/b").join("../c").to_s)
    assert_equal(Pathname("../c"), Pathname("/a/c").relative_path_from("/a/b"))
  end

  def test_data_of_this_process
    assert_equal(Process.pid, File.read("/proc/self/stat").to_i)
    assert_equal(Dir.pwd, File.readlink("/proc/self/cwd"))
  end
end

# Pipes, standard streams, terminals.
class StreamsTest < Minitest::Test
  def test_pipe
    reader, writer = IO.pipe
    writer.write("one\ntwo")
    writer.close
    assert_equal("one\n", reader.gets)
    assert_equal("two", reader.read)
    assert_predicate(reader, :eof?)
  end

  def test_blocking_read_yields_to_threads
    reader, writer = IO.pipe
    Thread.new { (sleep(0.02) && writer.write("late")).then { writer.close } }
    assert_equal("late", reader.read)
  end

  def test_nonblocking
    reader, writer = IO.pipe
    assert_equal(:wait_readable, reader.read_nonblock(1, exception: false))
    assert_raises(IO::EAGAINWaitReadable) { reader.read_nonblock(1) }
    writer << "x"
    assert_equal("x", reader.read_nonblock(9))
    assert_predicate(reader, :nonblock?)
  end

  def test_select
    reader, writer = IO.pipe
    assert_nil(IO.select([reader], nil, nil, 0.01))
    assert_equal([[], [writer], []], IO.select([reader], [writer], nil, 1))
    writer << "x"
    assert_equal([[reader], [], []], IO.select([reader], nil, nil, 1))
    assert(reader.wait_readable(1))
  end

  def test_copy_stream
    from = Tempfile.new
    to = Tempfile.new
    from.write("x" * 200_000)
    from.flush
    assert_equal(200_000, IO.copy_stream(from.path, to.path))
    assert_equal(200_000, File.size(to.path))
  end

  def test_standard_streams
    assert_equal([0, 1, 2], [$stdin, $stdout, $stderr].map(&:fileno))
    was = $stderr.dup
    file = Tempfile.new
    $stderr.reopen(file.path, "w")
    warn("redirected")
    system("echo child >&2")
    $stderr.reopen(was)
    assert_equal("redirected\nchild\n", File.read(file.path))
  end

  def test_lowest_descriptors_are_used
    numbers = Array.new(3) { IO.pipe }.flatten.map(&:fileno)
    assert_equal(numbers.uniq, numbers)
    assert_operator(numbers.min, :>, 2)
    assert_operator(numbers.max, :<, 64)
  end

  def test_closed
    file = File.open(File::NULL).tap(&:close)
    assert_raises(IOError) { file.read }
  end

  def test_close_wakes_readers
    reader, = IO.pipe
    thread = Thread.new { reader.read }
    thread.report_on_exception = false
    Thread.pass until thread.stop?
    reader.close
    assert_raises(IOError) { thread.value }
  end

  def test_console
    PTY.open do |terminal, child|
      child.winsize = [33, 99]
      assert_equal([33, 99], terminal.winsize)
      assert_predicate(child, :isatty)
    end
    refute_predicate(File.open(File::NULL), :isatty)
  end

  def test_pty_spawn
    PTY.spawn("tty; exit 2") do |output, _, pid|
      assert_match(%r{\A/dev/pts/\d+}, output.gets)
      assert_equal(2, Process.wait2(pid).last.exitstatus)
    end
  end
end

# Sockets on this machine.
class SocketsTest < Minitest::Test
  def test_tcp
    server = TCPServer.new("127.0.0.1", 0)
    answer = Thread.new { server.accept.then { |peer| peer.puts(peer.gets.chomp.reverse) || peer.close } }
    client = TCPSocket.new("127.0.0.1", server.addr[1])
    client.write("abc\n")
    assert_equal("cba\n", client.read)
    answer.join
    assert_raises(Errno::ECONNREFUSED) { TCPSocket.new("127.0.0.1", server.addr[1].tap { server.close }) }
  end

  def test_unix
    left, right = UNIXSocket.pair
    left.send_io(File.open("/proc/self/stat"))
    assert_equal(Process.pid, right.recv_io.read.to_i)
    Dir.mktmpdir do |place|
      UNIXServer.open("#{place}/socket") do |server|
        UNIXSocket.open("#{place}/socket") { |client| client.write("hi") }
        assert_equal("hi", server.accept.read)
      end
    end
  end

  def test_udp
    receiver = UDPSocket.new.tap { |socket| socket.bind("127.0.0.1", 0) }
    UDPSocket.new.send("datagram", 0, "127.0.0.1", receiver.addr[1])
    assert_equal("datagram", receiver.recvfrom(20).first)
  end

  def test_names
    assert_equal("127.0.0.1", Addrinfo.tcp("127.0.0.1", 80).ip_address)
    assert_includes(%w[127.0.0.1 ::1], Addrinfo.getaddrinfo("localhost", nil).first.ip_address)
    assert_equal(File.read("/proc/sys/kernel/hostname").chomp, Socket.gethostname)
  end

  def test_http
    quiet = WEBrick::Log.new(File::NULL)
    server = WEBrick::HTTPServer.new(BindAddress: "127.0.0.1", Port: 0, Logger: quiet, AccessLog: [])
    server.mount_proc("/") { |request, response| response.body = request.request_method + request.body.to_s }
    thread = Thread.new { server.start }
    Net::HTTP.start("127.0.0.1", server.config[:Port]) do |http|
      assert_equal("GET", http.get("/").body)
      assert_equal("POSTdata", http.post("/", "data").body)
    end
  ensure
    server.shutdown
    thread.join
  end
end
# rubocop:enable Security/IoMethods, Lint/IncompatibleIoSelectWithFiberScheduler

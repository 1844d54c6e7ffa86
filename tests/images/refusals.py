"""Programs that cannot be frozen, by what is in the way, each with what its refusal says: first the finding, then the remedy."""

# What the modules share. A system call that the kernel does not permit ends the module with UNAVAILABLE, and the test is
# skipped.
PRELUDE = """
import ctypes, fcntl, mmap, os, signal, socket, struct, sys, tempfile, threading, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
KEPT = []
FOLDER = os.path.dirname(os.path.abspath(__file__))

def done(result):
    if result in (-1, ctypes.c_void_p(-1).value):
        print("UNAVAILABLE", os.strerror(ctypes.get_errno()))
        sys.stdout.flush()
        os._exit(9)
    return result
"""

# name: (source, words of the message)
PROGRAMS = {
    "a connected TCP socket": (
        """
        server = socket.create_server(("127.0.0.1", 0))
        port = server.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        peer, _ = server.accept()
        server.close(); peer.close()
        """,
        ["descriptor", "a connected TCP socket (127.0.0.1:", "before_freeze"],
    ),
    "a connected TCP socket over IPv6": (
        """
        try:
            server = socket.create_server(("::1", 0), family=socket.AF_INET6)
        except OSError:
            done(-1)
        client = socket.create_connection(server.getsockname()[:2])
        """,
        ["a connected TCP socket ([::1]:", "before_freeze"],
    ),
    "a listening TCP socket": (
        'server = socket.create_server(("127.0.0.1", 0))',
        ["descriptor", "a listening TCP socket (127.0.0.1:", "before_freeze"],
    ),
    "a UDP socket": (
        """
        client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        client.connect(("127.0.0.1", 9))
        """,
        ["a connected UDP socket (127.0.0.1:9)", "before_freeze"],
    ),
    "standard input that was closed": (
        "os.close(0)",
        ["descriptor 0 (standard input) was closed by the program while it loaded", "main part"],
    ),
    "nothing in the place of standard input": (
        "nothing = os.open(os.devnull, os.O_RDONLY); os.dup2(nothing, 0); os.close(nothing)",
        ["descriptor 0 (standard input) was made /dev/null by the program", "main part"],
    ),
    "a file in the place of standard output": (
        "sys.stdout.flush(); log = os.open(FOLDER + '/log', os.O_WRONLY | os.O_CREAT); os.dup2(log, 1); os.close(log)",
        ["descriptor 1 (standard output) was made ", "/log by the program", "main part"],
    ),
    "a pair of unix sockets with bytes in it": (
        "pair = socket.socketpair(); pair[0].send(b'unread')",
        ["a unix socket with unread bytes in it", "ead them before the freeze"],
    ),
    "a unix socket whose peer is closed": (
        "pair = socket.socketpair(); pair[1].close()",
        ["a unix socket whose peer is in another process", "before_freeze"],
    ),
    "a pair of unix sockets of which one is open twice": (
        "pair = socket.socketpair(); second = pair[0].dup()",
        ["a unix socket whose peer is in another process, or which was duplicated", "before_freeze"],
    ),
    "a pair of unix sockets with options": (
        "pair = socket.socketpair(); pair[1].setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)",
        ["a unix socket whose options the program has set", "before_freeze"],
    ),
    "a TCP socket with options": (
        "new = socket.socket(); new.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)",
        ["a socket whose options the program has set", "before_freeze"],
    ),
    "a bound unix socket": (
        """
        server = socket.socket(socket.AF_UNIX)
        if os.path.exists(FOLDER + "/the.socket"):
            os.unlink(FOLDER + "/the.socket")  # of the first boot: the second one tells where descriptors were opened
        server.bind(FOLDER + "/the.socket")
        server.listen()
        """,
        ["a listening unix socket", "/the.socket", "before_freeze"],
    ),
    "a netlink socket": (
        "link = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); link.bind((0, 0))",
        ["netlink socket", "before_freeze"],
    ),
    "an epoll that watches a standard stream": (
        """
        import select
        ends = os.pipe()
        os.dup2(ends[0], 0)
        poll = select.epoll()
        poll.register(0)
        """,
        ["an epoll instance that watches standard streams", "before_freeze"],
    ),
    "an epoll that watches what has lost its number": (
        """
        import select
        first, second, poll = done(libc.eventfd(1, 0)), done(libc.eventfd(2, 0)), select.epoll()
        poll.register(first)
        kept = os.dup(first)
        os.dup2(second, first)
        """,
        ["an epoll instance that watches", "was closed here and is open elsewhere", "before_freeze"],
    ),
    "an inotify that watches": (
        "number = done(libc.inotify_init1(0)); done(libc.inotify_add_watch(number, FOLDER.encode(), 2))",
        ["descriptor", "an inotify instance that watches files", "after the freeze point"],
    ),
    "a timerfd that runs": (
        "number = done(libc.timerfd_create(1, 0)); "
        "done(libc.timerfd_settime(number, 0, (ctypes.c_long * 4)(0, 0, 1000, 0), None))",
        ["descriptor", "a timer that runs", "before_freeze"],
    ),
    "the pidfd of another process": (
        "number = done(libc.syscall(434, os.getppid(), 0))",
        ["descriptor", "pidfd of another process", "before_freeze"],
    ),
    "an io_uring": (
        "parameters = (ctypes.c_char * 120)(); number = done(libc.syscall(425, 4, parameters))",
        ["descriptor", "io_uring", "before_freeze"],
    ),
    "a userfaultfd": (
        "number = done(libc.syscall(323, 1))",
        ["descriptor", "userfaultfd", "before_freeze"],
    ),
    "a perf event": (
        """
        attributes = (ctypes.c_uint32 * 32)(1, 128)
        attributes[10] = 0b1100001  # disabled, without kernel and hypervisor
        number = done(libc.syscall(298, attributes, 0, -1, -1, 0))
        """,
        ["descriptor", "perf", "before_freeze"],
    ),
    "a memfd": (
        'number = done(libc.memfd_create(b"mine", 0))',
        ["descriptor", "memfd:mine", "before_freeze"],
    ),
    "a mapped memfd": (
        """
        number = done(libc.memfd_create(b"mine", 0))
        os.ftruncate(number, 4096)
        area = mmap.mmap(number, 4096)
        os.close(number)
        """,
        ["memory", "memfd:mine", "shared memory", "before_freeze"],
    ),
    "shared memory that is mapped twice": (
        """
        area = mmap.mmap(-1, 4096)
        libc.mremap.restype = ctypes.c_void_p
        address = ctypes.addressof(ctypes.c_char.from_buffer(area))
        # From a size of nothing: the old mapping stays.
        done(libc.mremap(ctypes.c_void_p(address), ctypes.c_size_t(0), ctypes.c_size_t(4096), 1))
        """,
        ["memory", "shared memory that is mapped twice", "before_freeze"],
    ),
    "shared memory that can only be read": (
        "area = mmap.mmap(-1, 4096, prot=mmap.PROT_READ)",
        ["memory", "cannot be read or written", "before_freeze"],
    ),
    "a named semaphore": (
        """
        import multiprocessing
        lock = multiprocessing.get_context("spawn").Lock()
        """,
        ["memory", "shared memory", "before_freeze"],
    ),
    "a shared mapping of a file that can be written": (
        """
        file = open(FOLDER + "/data", "w+b")
        file.truncate(4096)
        area = mmap.mmap(file.fileno(), 4096)
        """,
        ["memory", "/data", "a shared mapping that can be written", "before_freeze"],
    ),
    "SysV shared memory": (
        """
        identity = done(libc.shmget(0, 4096, 0o1600))
        libc.shmat.restype = ctypes.c_void_p
        area = done(libc.shmat(identity, None, 0))
        libc.shmctl(identity, 0, None)
        """,
        ["memory", "SYSV", "shared memory", "before_freeze"],
    ),
    "a deleted file that is open": (
        """
        file = open(FOLDER + "/gone", "w")
        os.unlink(FOLDER + "/gone")
        """,
        ["descriptor", "/gone", "has no name any more", "before_freeze"],
    ),
    "a file of which the opened name was deleted": (
        """
        file = open(FOLDER + "/gone", "w")
        os.link(FOLDER + "/gone", FOLDER + "/other")
        os.unlink(FOLDER + "/gone")
        """,
        ["descriptor", "/gone", "has no name any more", "before_freeze"],
    ),
    "a temporary file without a name": (
        "file = tempfile.TemporaryFile(dir=FOLDER)",
        ["descriptor", "has no name any more", "before_freeze"],
    ),
    "a deleted file that is mapped": (
        """
        file = open(FOLDER + "/gone", "w+b")
        file.truncate(4096)
        area = mmap.mmap(file.fileno(), 4096, mmap.MAP_PRIVATE)
        file.close()
        os.unlink(FOLDER + "/gone")
        """,
        ["memory", "/gone", "deleted or replaced", "again"],
    ),
    "a file that was replaced while it is mapped": (
        """
        file = open(FOLDER + "/old", "w+b")
        file.truncate(4096)
        area = mmap.mmap(file.fileno(), 4096, mmap.MAP_PRIVATE)
        file.close()
        os.rename(FOLDER + "/old", FOLDER + "/moved")
        open(FOLDER + "/moved", "w").close()
        other = open(FOLDER + "/new", "w"); other.close()
        os.rename(FOLDER + "/new", FOLDER + "/moved")
        """,
        ["memory", "deleted or replaced", "again"],
    ),
    "a pipe with one end elsewhere": (
        """
        ends = os.pipe()
        os.close(ends[0])
        """,
        ["descriptor", "one end of a pipe", "before_freeze"],
    ),
    "a pipe with bytes in it": (
        """
        ends = os.pipe()
        os.write(ends[1], b"unread")
        """,
        ["descriptor", "a pipe with unread bytes", "ead them before the freeze"],
    ),
    "a named pipe": (
        """
        if not os.path.exists(FOLDER + "/fifo"):
            os.mkfifo(FOLDER + "/fifo")
        number = os.open(FOLDER + "/fifo", os.O_RDWR)
        """,
        ["descriptor", "a named pipe", "/fifo", "before_freeze"],
    ),
    "a terminal": ("import pty; ends = pty.openpty()", ["descriptor", "a terminal", "before_freeze"]),
    "a POSIX timer": (
        """
        identity = ctypes.c_int()
        event = (ctypes.c_int * 16)()
        event[3] = 1  # SIGEV_NONE
        done(libc.syscall(222, 1, event, ctypes.byref(identity)))
        """,
        ["POSIX timer", "before_freeze"],
    ),
    "an alarm": (
        "signal.signal(signal.SIGALRM, lambda *_: None); signal.alarm(1000)",
        ["interval timer (alarm, setitimer)", "before_freeze"],
    ),
    "a virtual interval timer": (
        "signal.setitimer(signal.ITIMER_VIRTUAL, 1000)",
        ["the virtual interval timer", "before_freeze"],
    ),
    "a profiling interval timer": (
        "signal.setitimer(signal.ITIMER_PROF, 1000)",
        ["the profiling interval timer", "before_freeze"],
    ),
    "a pending signal": (
        """
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        os.kill(os.getpid(), signal.SIGUSR1)
        """,
        ["signal 10", "SIGUSR1", "is pending", "before the freeze"],
    ),
    "a flock": (
        'file = open(FOLDER + "/lock", "w"); fcntl.flock(file, fcntl.LOCK_EX)',
        ["file lock", "FLOCK", "/lock", "before_freeze"],
    ),
    "a POSIX file lock": (
        'file = open(FOLDER + "/lock", "w"); fcntl.lockf(file, fcntl.LOCK_EX)',
        ["file lock", "POSIX", "/lock", "before_freeze"],
    ),
    "an open file description lock": (
        """
        file = open(FOLDER + "/lock", "w")
        fcntl.fcntl(file, 37, struct.pack("hhqqixxxx", fcntl.F_WRLCK, 0, 0, 0, 0))
        """,
        ["file lock", "OFDLCK", "/lock", "before_freeze"],
    ),
    "a lease": (
        'file = open(FOLDER + "/leased", "w"); file.close(); file = open(FOLDER + "/leased")\n'
        "fcntl.fcntl(file, 1024, fcntl.F_RDLCK)",
        ["file lock", "LEASE", "/leased", "before_freeze"],
    ),
    "a live child": (
        'import subprocess; child = subprocess.Popen(["sleep", "600"])',
        ["a child process", "sleep", "before_freeze"],
    ),
    "a child that was not waited for": (
        """
        child = os.posix_spawn("/bin/true", ["true"], {})
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        """,
        ["a child process", "before_freeze"],
    ),
    "asynchronous input and output": (
        "context = ctypes.c_ulong(); done(libc.syscall(206, 4, ctypes.byref(context)))",
        ["memory", "[aio]", "before_freeze"],
    ),
    "memory under a protection key": (
        """
        key = done(libc.pkey_alloc(0, 0))
        area = done(libc.mmap(None, 4096, 3, 0x22, -1, 0))
        done(libc.pkey_mprotect(ctypes.c_void_p(area), 4096, 3, key))
        """,
        ["memory", "a protection key", "before_freeze"],
    ),
    "huge pages": (
        "area = done(libc.mmap(None, 2 << 20, 3, 0x40022, -1, 0))",
        ["memory", "huge pages", "after the freeze point"],
    ),
    "memory in the launcher's range": (
        "area = done(libc.mmap(0x100000100000, 4096, 3, 0x100022, -1, 0))",
        ["memory", "100000100000", "the range that the launcher needs"],
    ),
    "a mapped device": (
        """
        number = done(libc.open(b"/dev/mem", 0))
        area = done(libc.mmap(None, 4096, 1, 1, number, 0xF0000))
        os.close(number)
        """,
        ["memory", "device", "before_freeze"],
    ),
}

RUBY_PROGRAMS = {
    "a socket": (
        "require 'socket'; SERVER = TCPServer.new('127.0.0.1', 0)",
        ["a listening TCP socket (127.0.0.1:", "before_freeze"],
    ),
    "a pipe": ("R, W = IO.pipe; R.close", ["one end of a pipe", "before_freeze"]),
    "a file lock": (
        "FILE = File.open(File.join(__dir__, 'lock'), 'w'); FILE.flock(File::LOCK_EX)",
        ["file lock", "/lock", "before_freeze"],
    ),
    "nothing in the place of standard input": (
        "$stdin.reopen(File::NULL)",
        ["descriptor 0 (standard input) was made /dev/null by the program", "main part"],
    ),
    "a file in the place of standard output": (
        "$stdout.reopen(File.join(__dir__, 'log'), 'w')",
        ["descriptor 1 (standard output) was made ", "/log by the program", "main part"],
    ),
    "a child": ("CHILD = spawn('sleep 600')", ["a child process", "before_freeze"]),
    "a deleted file": (
        "FILE = File.open(File.join(__dir__, 'gone'), 'w'); File.unlink(FILE.path)",
        ["/gone", "has no name any more", "before_freeze"],
    ),
}

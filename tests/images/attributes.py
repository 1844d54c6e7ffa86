"""The kernel's attributes of a process: how a program changes each while it boots, what it sees of it, and what becomes of it in an image.

Each row is a program in Python and Ruby alike, since its text is valid in both: `call(NUMBER, ...)` makes a system call, in which
`words(...)` and `halves(...)` stand for memory with 64-bit and 32-bit numbers, `text(...)` for a string, and HERE in `answer(SIZE, ...)`
for memory that the kernel fills in. `tools/attributes.py --write` makes docs/process-attributes.md of these tables.
"""

import dataclasses

PYTHON = r"""
import ctypes, json, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
HERE, KEPT = object(), []

def words(*numbers): return struct.pack("%dQ" % len(numbers), *[n & (1 << 64) - 1 for n in numbers])
def halves(*numbers): return struct.pack("%dI" % len(numbers), *[n & (1 << 32) - 1 for n in numbers])
def text(string): return string.encode() + b"\0"
def address(memory):
    KEPT.append(ctypes.create_string_buffer(memory, len(memory)))
    return ctypes.addressof(KEPT[-1])
def call(number, *arguments):
    arguments = [address(it) if isinstance(it, bytes) else it for it in arguments]
    return libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments))
def answer(size, number, *arguments):
    memory = ctypes.create_string_buffer(b"\0" * size, size)
    got = call(number, *[ctypes.addressof(memory) if it is HERE else it for it in arguments])
    return [got, memory.raw.hex()]
def content(path):
    with open(path) as file: return file.read()
def write(path, string):
    try:
        with open(path, "w") as file: file.write(string)
    except OSError: return -1
    return 0
"""

RUBY = r"""
HERE = Object.new
KEPT = []
def address(memory) = [KEPT.push(memory).last].pack("P").unpack1("J")
def words(*numbers) = numbers.pack("Q*")
def halves(*numbers) = numbers.pack("L*")
def text(string) = string + "\0"
def call(number, *arguments)
  syscall(number, *arguments.map { |it| it.is_a?(String) ? address(it) : it })
rescue SystemCallError
  -1
end
def answer(size, number, *arguments)
  memory = "\0".b * size
  [call(number, *arguments.map { |it| it.equal?(HERE) ? memory : it }), memory.unpack1("H*")]
end
def content(path) = File.read(path)
def write(path, string)
  File.open(path, "w") { |file| file.syswrite(string) }
  0
rescue SystemCallError
  -1
end
"""

PRCTL = 157


@dataclasses.dataclass(frozen=True)
class Row:
    """An attribute as crates/inputs attributes.rs calls it, the calls that change it, and the one that shows it."""

    name: str
    change: str
    shown: str = ""
    # Where it counts that the start has inherited the same.
    from_same: bool = False


def _limit(name, number, soft, hard):
    return Row(f"limit of {name}", f"call(302, 0, {number}, words({soft}, {hard}), 0)", f"answer(16, 302, 0, {number}, 0, HERE)")


REPEATED = [
    Row("current directory", 'call(80, text("/usr/share"))', "answer(4096, 79, HERE, 4096)"),
    Row("oom_score_adj", 'write("/proc/self/oom_score_adj", "123")', 'content("/proc/self/oom_score_adj")'),
    Row("coredump_filter", 'write("/proc/self/coredump_filter", "0x11")', 'content("/proc/self/coredump_filter")'),
    Row("CPU affinity", "call(203, 0, 8, words(1))", "answer(128, 204, 0, 128, HERE)", from_same=True),
    Row("nice value, scheduling policy and priority", "call(141, 0, 0, 7)", "answer(56, 315, 0, HERE, 56, 0)", from_same=True),
    Row("I/O priority", "call(251, 1, 0, 16390)", "call(252, 1, 0)"),
    Row("NUMA memory policy", "call(238, 2, words(1), 8)", "answer(136, 239, HERE, 0, 0, 0, 0)", from_same=True),
    Row("personality", "call(135, 1048576)", "call(135, 4294967295)", from_same=True),
    Row("timer slack", f"call({PRCTL}, 29, 123456)", f"call({PRCTL}, 30)"),
    Row("switch for transparent huge pages (PR_SET_THP_DISABLE)", f"call({PRCTL}, 41, 1, 0, 0, 0)", f"call({PRCTL}, 42, 0, 0, 0, 0)"),
    Row("switch for memory merging (PR_SET_MEMORY_MERGE)", f"call({PRCTL}, 67, 1, 0, 0, 0)", f"call({PRCTL}, 68, 0, 0, 0, 0)"),
    Row("child subreaper flag", f"call({PRCTL}, 36, 1)", f"answer(4, {PRCTL}, 37, HERE)"),
    Row("parent death signal", f"call({PRCTL}, 1, 10)", f"answer(4, {PRCTL}, 2, HERE)"),
    Row("machine check policy (PR_MCE_KILL)", f"call({PRCTL}, 33, 1, 1, 0, 0)", f"call({PRCTL}, 34, 0, 0, 0, 0)"),
    Row("I/O flusher flag", f"call({PRCTL}, 57, 1, 0, 0, 0)", f"call({PRCTL}, 58, 0, 0, 0, 0)"),
    Row("permission for extended registers (ARCH_REQ_XCOMP_PERM)", "call(158, 4131, 18)", "answer(8, 158, 4130, HERE)"),
    _limit("CPU time", 0, 500000, 600000),
    _limit("file sizes", 1, 10**12, 10**12),
    _limit("data", 2, 10**12, 10**12),
    _limit("the stack", 3, 4 << 20, 1 << 28),
    _limit("core dumps", 4, 0, 0),
    _limit("resident memory", 5, 10**12, 10**12),
    _limit("processes", 6, 4000, 4000),
    _limit("open files", 7, 300, 400),
    _limit("locked memory", 8, 10**6, 10**6),
    _limit("the address space", 9, 1 << 46, 1 << 46),
    _limit("file locks", 10, 100, 100),
    _limit("pending signals", 11, 100, 100),
    _limit("message queues", 12, 1000, 1000),
    _limit("niceness", 13, 5, 5),
    _limit("real-time priority", 14, 5, 5),
    _limit("real-time CPU time", 15, 10**6, 10**6),
]

# In this order: some take away what others need.
REFUSED = [
    Row("group ids (real, effective, saved, file system)", "call(119, -1, 100, -1)"),
    Row("supplementary groups", "call(116, 2, halves(5, 6))"),
    Row("namespaces", "call(272, 67108864)"),
    Row("root directory", 'call(161, text("/"))'),
    Row("keyrings", "call(250, 1, 0)"),
    Row("securebits", f"call({PRCTL}, 28, 16)"),
    Row("capability bounding set", f"call({PRCTL}, 24, 22)"),
    Row("speculation controls", f"call({PRCTL}, 53, 0, 4, 0, 0)"),
    Row("core scheduling cookie", f"call({PRCTL}, 62, 1, 0, 0, 0)"),
    Row("audit login id", 'write("/proc/self/loginuid", "0")'),
    Row("permission for I/O ports", "call(173, 128, 1, 1)"),
    Row("local descriptor table", "call(154, 1, halves(0, 0, 0, 16), 16)"),
    Row("process group", "call(109, 0, 0)"),
    Row("permission for a tracer (PR_SET_PTRACER)", f"call({PRCTL}, 1499557217, 1, 0, 0, 0)"),
    Row("dispatch of system calls (PR_SET_SYSCALL_USER_DISPATCH)", f"call({PRCTL}, 59, 0, 0, 0, 0)"),
    Row("locked memory (mlock, mlockall)", "call(151, 1)"),
    Row("no-new-privileges flag", f"call({PRCTL}, 38, 1, 0, 0, 0)"),
    Row("Landlock rules", "call(446, call(444, words(1), 8, 0), 0)"),
    # A filter that allows all: one instruction, at the place that follows their number.
    Row("seccomp filters", "seccomp_filter()"),
    Row("dumpable flag (PR_SET_DUMPABLE)", f"call({PRCTL}, 4, 0)"),
    Row("capabilities (effective, permitted, inheritable)", "call(126, halves(537396514, 0), halves(16777215, 16777215, 1, 0, 0, 0))"),
    Row("ambient capabilities", f"call({PRCTL}, 47, 2, 0, 0, 0)"),
    Row("refusal of writable code (PR_SET_MDWE)", f"call({PRCTL}, 65, 1, 0, 0, 0)"),
]

FILTERS = {
    "python": """
def seccomp_filter():
    return call(317, 1, 0, words(1, address(words(0x7FFF000000000006))))
""",
    "ruby": """
def seccomp_filter = call(317, 1, 0, words(1, address(words(0x7FFF000000000006))))
""",
}

# Each alone: nothing else can be done afterwards.
ALONE = [
    Row("user ids (real, effective, saved, file system)", "call(117, 65534, 65534, 65534)"),
    Row("session", "call(112)"),
]

# Those that a row cannot change on every machine: what is told of them, and the test of the mechanism.
COMPARED_ONLY = {
    # It is that of the whole session.
    "niceness of its autogroup": "the content of /proc/self/autogroup",
    "control group": "the content of /proc/self/cgroup",
    "security labels (/proc/self/attr)": "the files of /proc/self/attr",
    "switches of the CPU (TSC, CPUID, shadow stack, address tags)": "PR_GET_TSC, ARCH_GET_CPUID, ARCH_SHSTK_STATUS, ARCH_GET_UNTAG_MASK",
}

# What other tests hold: attribute, class, what becomes of it, test.
ELSEWHERE = [
    ("umask", "carried over", "set again to what the boot has set", "tests/staleness/test_early.py"),
    ("signal dispositions", "carried over", "signals that a start ignores stay ignored", "tests/behaviour/cases/40-signals.toml"),
    ("signal mask, alternate signal stack", "carried over", "", "tests/images/test_stack.py"),
    ("name of the process (comm), arguments, environment, executable", "set anew", "", "tests/images/test_process_name.py"),
    ("address space layout, brk, auxiliary vector", "set anew", "at the addresses of the boot", "tests/images/test_layout.py"),
    ("robust list, rseq, thread id address", "set anew", "registered again at their addresses", "tests/images/test_memory.py"),
    ("controlling terminal, standard streams", "set anew", "those of each start", "tests/store/test_terminals.py"),
    ("descriptors", "carried over", "those that can be made again; all others are refused", "tests/images/test_refusals.py"),
    ("interval timers, POSIX timers", "refused", "", "tests/images/test_refusals.py"),
    ("pending signals", "refused", "", "tests/images/test_refusals.py"),
    ("file locks, leases", "refused", "", "tests/images/test_refusals.py"),
    ("child processes", "refused", "", "tests/images/test_refusals.py"),
    (
        "limits, users, groups, affinity, directory, umask that the boot reads",
        "compared",
        "an image is used where they are the same",
        "tests/staleness/test_facts.py",
    ),
]

"""Continues a start of an enabled environment's Python as `snapboot run` where the program has an image, or is started again and again.

The file of `snapboot enable` runs this while `site` is at work, before anything of the program: the process executes `snapboot run` with
its own command line and the environment that the kernel gave it. That thaws the image, or has one made and starts the program the ordinary
way; then this runs once more in the same process, and lets it go on.

The entry in the place of the environment's interpreter (crates/entry) does the same without a Python, where the program has an image. What
it is not certain of comes here.

In the store's cache, `.starts` has files for each program, by a number for its path: NUMBER has a byte for each start without an image
that has imported more than a few modules, NUMBER.folder leads to the program's folder, and NUMBER.handed has a line for each process that
was handed over. All three only say whether to ask `snapboot run`, which decides and checks by itself.

Nothing is imported here that a program could find in `sys.modules`.
"""

import posix
import sys

# Flags of the interpreter that take no word of their own, and those that do.
PLAIN, WITH_WORD = b"BEIOPbdqsuvx", b"WX"
SIGPIPE, SIGXFSZ = 13, 25  # signal(7): the same on all architectures of Linux; Python ignores both
DEFAULT = 0
# Of a list of processes that were handed over (bytes): hundreds of them.
MOST = 8192
IMAGE = b".img"
# FNV-1a of 64 bits (RFC 9923).
BASIS, PRIME, MASK = 0xCBF29CE484222325, 0x100000001B3, (1 << 64) - 1


def program_of(words, code_of=None):
    """Returns the path or the module that a command line of Python starts, or what code_of returns for its code; None if that can have no
    image. words: bytes, without the name of the interpreter."""
    words = iter(words)
    for word in words:
        if not word.startswith(b"-"):
            return word if word.startswith(b"/") else posix.getcwdb() + b"/" + word
        if word.startswith(b"--") or word == b"-":
            return None
        for index in range(1, len(word)):
            letter, rest = word[index : index + 1], word[index + 1 :]
            if letter == b"m":
                module = rest or next(words, b"")
                return b"-m " + module if module else None
            if letter == b"c" and index == 1 and code_of is not None:
                return code_of(rest or next(words, b""))
            if letter in WITH_WORD:
                if not rest:
                    next(words, b"")
                break
            if letter not in PLAIN:
                return None
    return None


def code_here(text):
    """Returns what identifies a start of this code: it without its numbers, as those of descriptors differ each time, with the current
    directory and the parent's program, as the same code begins the children of many programs."""
    for digit in b"123456789":
        text = text.replace(b"%c" % digit, b"0")
    while b"00" in text:
        text = text.replace(b"00", b"0")
    try:
        parent = program_of(read(b"/proc/%d/cmdline" % posix.getppid()).split(b"\0")[1:-1])
    except OSError:
        parent = None
    return b"-c " + b"\0".join((text, posix.getcwdb(), parent or b""))


def number_of(text):
    """Returns the name of a program's files in `.starts`, for what identifies it (bytes)."""
    number = BASIS
    for byte in text:
        number = (number ^ byte) * PRIME & MASK
    return b"%016x" % number


def cache(environ):
    """Returns the folder of the store's images as location.rs of the store finds it; None if there is none. environ: of bytes."""
    if (named := environ.get(b"SNAPBOOT_STORE")) is not None:
        return named + b"/cache" if named.startswith(b"/") else None
    place = environ.get(b"XDG_CACHE_HOME", b"")
    if not place.startswith(b"/"):
        home = environ.get(b"HOME", b"")
        if not home.startswith(b"/"):
            return None
        place = home + b"/.cache"
    return place + b"/snapboot/images"


def is_found(name, executable):
    """Returns whether a word names this interpreter: it is a path, or the first file of that name in PATH is this interpreter's. Where
    another program has Python inside, as servers and editors have, its words are no command line of Python."""
    if not posix.readlink(b"/proc/self/exe").rpartition(b"/")[2].startswith(b"python"):
        return False
    if b"/" in name:
        return True
    for folder in posix.environ.get(b"PATH", b"").split(b":"):
        path = folder + b"/" + name
        if posix.access(path, posix.X_OK):
            return path == executable
    return False


def read(path, folder=None):
    """Returns what a file holds. folder: a descriptor, where the path is a name in it."""
    descriptor = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NOFOLLOW, dir_fd=folder)
    try:
        parts = []
        while part := posix.read(descriptor, 1 << 16):
            parts.append(part)
        return b"".join(parts)
    finally:
        posix.close(descriptor)


def append(name, folder, text, flags=0):
    """Appends to a file of a folder, given by its descriptor; a missing one is made. Returns the file's size."""
    flags |= posix.O_WRONLY | posix.O_APPEND | posix.O_CREAT | posix.O_CLOEXEC | posix.O_NOFOLLOW
    descriptor = posix.open(name, flags, 0o600, dir_fd=folder)
    try:
        posix.write(descriptor, text)
        return posix.fstat(descriptor).st_size
    finally:
        posix.close(descriptor)


def is_own(status):
    """Returns whether only this user can write there: nothing of anybody else is followed, and nothing written for others to find."""
    return status.st_uid == posix.geteuid() and not status.st_mode & 0o022


def make(path):
    """Makes a folder and those above it, for this user alone. Raises PermissionError in a folder of others."""
    above = path.rpartition(b"/")[0]
    try:
        is_mine = is_own(posix.stat(above))
    except FileNotFoundError:
        make(above)
        is_mine = True
    if not is_mine:
        raise PermissionError("%r belongs to others" % above)
    try:
        posix.mkdir(path, 0o700)
    except FileExistsError:
        pass


def opened(path):
    """Returns a descriptor of a folder of this user, which is made where it is missing. Raises PermissionError for one of others."""
    flags = posix.O_RDONLY | posix.O_DIRECTORY | posix.O_NOFOLLOW | posix.O_CLOEXEC
    try:
        folder = posix.open(path, flags)
    except FileNotFoundError:
        make(path)
        folder = posix.open(path, flags)
    if not is_own(posix.fstat(folder)):
        posix.close(folder)
        raise PermissionError("%r belongs to others" % path)
    return folder


def is_due(place, name, folder):
    """Returns whether `snapboot run` is to be asked: there is an image, or this is the second start without one, the fourth, the eighth ...
    place: of `.starts`; name: of the program's file in it; folder: its descriptor."""
    try:
        names = posix.listdir(place + b"/" + name + b".folder")
    except FileNotFoundError:
        names = ()
    if any(name.endswith(IMAGE) for name in names):
        return True
    try:
        before = posix.stat(name, dir_fd=folder, follow_symlinks=False).st_size
    except FileNotFoundError:
        return False
    return not before & (before + 1)


def count(place, name):
    """Counts a start without an image."""
    folder = opened(place)
    try:
        append(name, folder, b".")
    finally:
        posix.close(folder)


def was_handed_over(name, folder):
    """Returns whether this process was handed over before, and writes that it is now. An image that cannot serve a start may execute the
    program in several ways, and none of them may lead here again and again. Number and time of its start identify a process."""
    begun = read(b"/proc/self/stat").rpartition(b") ")[2].split()[19]
    line = b"%d %s\n" % (posix.getpid(), begun)
    try:
        told = read(name, folder)
    except FileNotFoundError:
        told = b""
    if line in told.splitlines(True):
        return True
    append(name, folder, line, posix.O_TRUNC if len(told) > MOST else 0)
    return False


def hand_over(snapboot, own):
    """Executes `snapboot run` with this start, where that is due. Otherwise returns what counts this start, to be called once it has
    imported more than a few modules; None if it can have no image. snapboot: its path; own: the folder of Snapboot's modules, whose
    scripts start programs by themselves."""
    encode = sys.modules["os"].fsencode
    executable = encode(sys.executable)
    name, *words = read(b"/proc/self/cmdline").split(b"\0")[:-1]
    program = program_of(words, code_here)
    if program is None or program.startswith(encode(own) + b"/") or not is_found(name, executable):
        return None
    place = cache(posix.environ)
    if place is None:
        return None
    place += b"/.starts"
    number = number_of(executable + b"\0" + program)
    folder = opened(place)
    try:
        if not is_due(place, number, folder) or was_handed_over(number + b".handed", folder):
            return lambda: count(place, number)
        append(number, folder, b".")
    finally:
        posix.close(folder)
    # What was set since, such as LC_CTYPE by Python itself, is set again by whoever did that.
    pairs = (entry.partition(b"=") for entry in read(b"/proc/self/environ").split(b"\0") if entry)
    given = {name: value for name, _, value in pairs}
    # Raises ValueError in an interpreter inside of a running program: that must not be replaced.
    signal = sys.modules["_signal"].signal
    before = {number: signal(number, DEFAULT) for number in (SIGPIPE, SIGXFSZ)}
    try:
        posix.execve(snapboot, [snapboot, b"run", b"--starts", place + b"/" + number, b"--", name, *words], given)
    finally:
        for number, handler in before.items():
            signal(number, handler)

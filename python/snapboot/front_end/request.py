"""The request of `snapboot freeze`: DIR/request, NUL-terminated `key=value` entries; a repeated key makes a list; values are raw bytes."""

import posix
import sys

from . import channel


class Request:
    """What to freeze.

    folder: the control directory (bytes). main: "bare", "script", "module" or "code". argv: the command as the kernel starts it.
    main_index: where in argv the main part begins. script: absolute path of the script, or None. preload: names of modules. boot_only:
    names of variables that the boot or its libraries see, though the user has not set them. origins: whether to record where descriptors
    are opened.

    at: the functions at which to freeze, at whichever is called first, as MODULE:FUNCTION; none to freeze before the main part.

    learnt: the file of each module that training runs have loaded, by name, in that order. always: the modules that all of these runs have
    loaded. warm_up: their one-time work, see recipes.py. patterns: the regular expressions that they have compiled, see patterns.py.
    changed: names of variables (bytes) that the program set in these runs.

    profile: the file to which thawed processes append what else they load, or None. told_of: the script behind all links, with which these
    entries begin, if there is one. on_news: the command that they then start. known: names of modules that are not reported. archive: the
    file that switches a boot archive on after the thaw, or None. terminal: numbers of the standard streams that are a terminal in the
    starts that the image serves, or None where it serves starts with and without one.

    evidence: "first", "other" or "again", in boots that find out what depends on the start. most_files: how many modules a program may
    have that is booted several times for that. facts: the values that an image holds, see
    evidence.py. system: names of another host, release and version of another kernel, by the names of these facts. more_variables: whether
    code that reads the whole environment finds additional variables in it. watches_values: whether only comparisons with these values are
    recorded, see watched_values.py. shifts_addresses: by how much the program's objects have other addresses than in the first boot, see
    evidence.py; 0 for not at all. form: the number of the form that the values of another start have, see everyday_forms.py; 0 for none.

    leaves_script: whether each start reads the script. checkouts: folders of the user's own files, which are not reported.

    secrets: names of variables (bytes) for which the boot has made-up values. recipe_code: for each recipe with code its name, its folder
    and the code. restarted_threads: names of packages whose threads are started again on demand. compares_secrets: whether nothing is
    frozen, and the contents of the process are compared with a boot with other values.
    """

    def __init__(self, folder, entries):
        fields = {}
        for entry in entries:
            key, _, value = entry.partition(b"=")
            fields.setdefault(key.decode(), []).append(decode(value))

        def records(key):
            return [tuple(map(decode, channel.fields(encode(value)))) for value in fields.get(key, [])]

        self.folder = folder
        self.main = fields["main"][0]
        self.argv = fields["argv"]
        self.main_index = int(fields["main_index"][0])
        self.script = fields.get("script", [None])[0]
        self.preload = fields.get("preload", [])
        self.at = fields.get("at", [])
        self.boot_only = fields.get("boot_only", [])
        self.learnt = dict(records("learnt"))
        self.always = set(fields.get("always", []))
        self.warm_up = fields.get("warm_up", [])
        self.recipe_code = records("recipe_code")
        self.restarted_threads = fields.get("restarted_thread", [])
        self.patterns = fields.get("pattern", [])
        self.changed = [encode(name) for name in fields.get("changed", [])]
        self.harmless = list(records("harmless"))
        self.profile = fields.get("profile", [None])[0]
        self.told_of = fields.get("told_of", [])
        self.archive = fields.get("archive", [None])[0]
        self.on_news = fields.get("on_news", [])
        self.known = fields.get("known", [])
        self.terminal = frozenset(map(int, fields.get("terminal", []))) if "binds_terminal" in fields else None
        self.origins = fields.get("origins") == ["1"]
        self.evidence = fields.get("evidence", [""])[0]
        self.most_files = int(fields.get("most_files", ["0"])[0])
        self.more_variables = fields.get("more_variables") == ["1"]
        self.watches_values = fields.get("watches_values") == ["1"]
        self.shifts_addresses = int(fields.get("shifts_addresses", ["0"])[0])
        self.form = int(fields.get("form", ["0"])[0])
        self.system = dict(encode(fact).split(b"=", 1) for fact in fields.get("system", []))
        self.facts = dict(encode(fact).split(b"=", 1) for fact in fields.get("fact", []))
        self.leaves_script = fields.get("leaves_script") == ["1"]
        self.checkouts = fields.get("checkout", [])
        self.secrets = [encode(name) for name in fields.get("secret", [])]
        self.compares_secrets = fields.get("compares_secrets") == ["1"]


def read_request(folder):
    """Reads `request` in the control directory (bytes). Raises OSError, or KeyError for a request without a needed key."""
    return Request(folder, read_file(folder + b"/request").split(b"\0")[:-1])


def read_file(path):
    """The whole of a file. Raises OSError."""
    descriptor = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    try:
        return read_all(descriptor)
    finally:
        posix.close(descriptor)


def read_all(descriptor):
    """Reads a descriptor up to its end. Raises OSError."""
    parts = []
    while True:
        part = posix.read(descriptor, 65536)
        if not part:
            return b"".join(parts)
        parts.append(part)


def encode(text):
    """Text to bytes, as `os.fsencode` does."""
    return text if isinstance(text, bytes) else text.encode(ENCODING, ERRORS)


def decode(data):
    """Bytes to text, as `os.fsdecode` does."""
    return data if isinstance(data, str) else data.decode(ENCODING, ERRORS)


ENCODING = sys.getfilesystemencoding()
ERRORS = sys.getfilesystemencodeerrors()

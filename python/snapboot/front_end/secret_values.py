"""Secret variables: the boot has made-up values of them, and a thaw puts the real ones where the program keeps them.

What is searched for are the made-up value of each variable, and user and password where it is an address (crates/inputs secret.rs takes
it apart in the same way). Each text that is one of these or holds it is made anew in a thaw. That is only right for a program that does
nothing else with them. `snapboot freeze` boots the program again with others, and compares what is in the processes: see `comparison.py`.
"""

from . import comparison, holders_of_texts
from .main_part import Fallback
from .report import write_file
from .request import decode, read_file


class Secrets:
    """The secrets that the program was shown, and what it keeps of them."""

    def __init__(self, names, environment):
        """names: of all that are set (bytes). environment: what the program is booted with, a mapping of bytes."""
        self._names = frozenset(names)
        self.values = {name: environment[name] for name in names if name in environment}
        self._kept = []
        self.patterns = ()

    def show(self, name, value):
        """The program is shown a variable that it has looked up."""
        if name in self._names:
            self.values[name] = value

    def settle(self, own, kept_by_front_end):
        """Finds what is kept. Returns what cannot be exchanged, in words. To be called after a collection.

        own: ids of objects that are renewed anyway, or that no thaw uses. kept_by_front_end: see `holders_of_texts.Search`.
        """
        self.patterns = Patterns(self.values)
        if not self.values:
            return []
        search = holders_of_texts.Search(self.patterns, own | {id(self), id(self.__dict__), id(self.values)}, kept_by_front_end)
        search.run()
        self._kept = search.kept
        return search.problems

    def renew(self, entries):
        """Puts the values of this start in place. entries: its environment. Raises Fallback where that cannot be."""
        if not self._kept:
            return
        values = {}
        for entry in entries:
            name, equals, value = entry.partition(b"=")
            if equals and name in self.values:
                values.setdefault(name, value)
        real = self.patterns.real(values)
        if real is None:
            raise Fallback("a secret has another form than the one that the image was made with")
        holders_of_texts.exchange(self._kept, real)
        self._kept = self.patterns = ()

    def write_texts(self, folder, own):
        """Writes down what is in this process, without the secrets. folder: the control directory."""
        write_file(folder + b"/texts", comparison.digests(self.patterns, own))

    def derived(self, folder, own):
        """What is among the suspects that another boot lacks, in words."""
        try:
            suspects = read_file(folder + b"/suspects")
        except OSError:
            return []
        return comparison.named(self.patterns, own, suspects)


class Patterns:
    """The texts by which secrets are found, and in what way each is made of a value."""

    def __init__(self, values):
        self.ways = []  # for each pattern the name of its variable, and which part of the value it is
        self.bytes = []
        for name, value in sorted(values.items()):
            for way, part in parts(value).items():
                if part not in self.bytes:
                    self.ways.append((name, way))
                    self.bytes.append(part)
        order = sorted(range(len(self.bytes)), key=lambda at: -len(self.bytes[at]))
        self.ways = [self.ways[at] for at in order]
        self.bytes = [self.bytes[at] for at in order]
        self.texts = list(map(decode, self.bytes))

    def split(self, text):
        """A list of texts, and of numbers of patterns where these are in it; None where there are none. text: str or bytes."""
        for pattern in self.texts if isinstance(text, str) else self.bytes:
            if pattern in text:
                return self._split(text)
        return None

    def _split(self, text):
        pieces = [text]
        for number, pattern in enumerate(self.texts if isinstance(text, str) else self.bytes):
            pieces = [
                piece
                for whole in pieces
                for piece in ([whole] if type(whole) is int else _between(whole, pattern, number))
                if type(piece) is int or piece
            ]
        return pieces

    def real(self, values):
        """What stands for each pattern in a start with these values, as bytes; None where one has no such part."""
        all_parts = {name: parts(value) for name, value in values.items()}
        try:
            return [all_parts[name][way] for name, way in self.ways]
        except KeyError:
            return None

    def name(self, number):
        """The name of the variable of a pattern."""
        return self.ways[number][0].decode(errors="replace")


def _between(text, pattern, number):
    """The text in pieces, with the number where the pattern was."""
    pieces = text.split(pattern)
    return [piece for whole in pieces[:-1] for piece in (whole, number)] + pieces[-1:]


def parts(value):
    """The parts of a value (bytes) that are searched for, by the way in which they come from it."""
    found = {"whole": value}
    before, slashes, rest = value.partition(b"://")
    if not slashes or not before or any(byte not in SCHEME for byte in before):
        return found
    end = min([at for at in map(rest.find, (b"/", b"?", b"#")) if at >= 0], default=len(rest))
    login, at, _ = rest[:end].rpartition(b"@")
    after = rest[len(login) :]
    if not at or b"@" in login or b"://" in after or any(word in after.lower() for word in IN_QUERY):
        return found
    user, colon, password = login.partition(b":")
    for way, part in (("user", user), ("password", password if colon else b"")):
        if part:
            found[way] = part
            if b"%" in part:
                found["decoded " + way] = _unquoted(part)
    if user and colon and password:
        found["login"] = login
    return found


def _unquoted(part):
    """A text without escapes, as `urllib.parse.unquote` gives it."""
    pieces = part.split(b"%")
    found = [pieces[0]]
    for piece in pieces[1:]:
        try:
            found.append(bytes([int(piece[:2], 16)]) + piece[2:])
        except ValueError:
            found.append(b"%" + piece)
    return b"".join(found)


SCHEME = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-"
IN_QUERY = (b"pass", b"pwd", b"token", b"secret", b"key=")

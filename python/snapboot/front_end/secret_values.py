"""Secret variables: the boot has made-up values, and a thaw replaces them with the real ones wherever the program keeps them.

The search covers the made-up value of each variable and, if it is an address, its user and password (crates/inputs secret.rs splits it in
the same way). A thaw makes each text anew that equals or contains one of these. That is only right for a program that does nothing else
with its secrets. So `snapboot freeze` boots the program again with other values, and compares the contents of the processes: see
`comparison.py`.
"""

from . import comparison, holders_of_texts
from .main_part import Fallback
from .report import write_file
from .request import decode, read_file


class Secrets:
    """The secrets that the program was shown, and where it keeps them."""

    def __init__(self, names, environment):
        """names: of all that are set (bytes). environment: what the program is booted with, a mapping of bytes."""
        self._names = frozenset(names)
        self.values = {name: environment[name] for name in names if name in environment}
        self._kept = []
        self.patterns = ()

    def show(self, name, value):
        """Records a variable that the program has looked up, and sets it."""
        if name in self._names:
            self.values[name] = value

    def settle(self, own, kept_by_front_end):
        """Finds the kept texts. Returns those that cannot be exchanged, in words. Call after a collection.

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
        """Inserts the values of this start. entries: its environment. Raises Fallback where that is impossible."""
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
        try:
            holders_of_texts.exchange(self._kept, real)
        except Exception as error:
            raise Fallback("a secret cannot be put in place: %s" % type(error).__name__) from None
        self._kept = self.patterns = ()

    def write_texts(self, folder, own):
        """Writes down the contents of this process, without the secrets. folder: the control directory."""
        write_file(folder + b"/texts", comparison.digests(self.patterns, own))

    def derived(self, folder, own):
        """Describes the suspects in this process that another boot lacks."""
        try:
            suspects = read_file(folder + b"/suspects")
        except OSError:
            return []
        return comparison.named(self.patterns, own, suspects)


class Patterns:
    """The texts by which secrets are found, and how each is derived from a value."""

    def __init__(self, values):
        self.ways = []  # for each pattern: the name of its variable, and the part of the value
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
        """Splits a text into texts, and numbers of patterns where these occur; None if none occurs. text: str or bytes."""
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
        """Returns the replacement of each pattern in a start with these values, as bytes; None if a value lacks such a part."""
        all_parts = {name: parts(value) for name, value in values.items()}
        try:
            return [all_parts[name][way] for name, way in self.ways]
        except KeyError:
            return None

    def name(self, number):
        """Returns the name of a pattern's variable."""
        return self.ways[number][0].decode(errors="replace")


def _between(text, pattern, number):
    """Splits the text at the pattern, with the number in its place."""
    pieces = text.split(pattern)
    return [piece for whole in pieces[:-1] for piece in (whole, number)] + pieces[-1:]


def parts(value):
    """Returns the parts of a value (bytes) to search for, by the way in which each is derived."""
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
    """Returns a text without escapes, like `urllib.parse.unquote`."""
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

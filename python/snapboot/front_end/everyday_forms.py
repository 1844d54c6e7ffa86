"""Boots whose facts have a form of everyday starts: the current directory is the topmost one, HOME itself, or below HOME; or HOME is the
topmost directory.

The other start (evidence.py) has shown of which facts each text is made. Here one text may be made of several facts, or be everywhere, such
as `/`. So nothing is guessed: at each path there must be what a thaw would make of these values, and all else must be as in the first boot.
The boot like the first one, which becomes the image, knows the noise, and so decides which forms were harmless.

Files in the control directory: `form_N` for each form, with the features of the values (start_form.forms) and what is held in the terms of
the first boot."""

import marshal
import posix

from . import start_form
from .holders_of_texts import TEXTS
from .object_paths import NAMELESS, nameless_path
from .report import write_file
from .request import decode, encode, read_file

FILE = b"form_"


class Predictions:
    """What the texts of this boot are made of, by what the other start has shown. Takes the place of evidence.Translation in a walk."""

    def __init__(self, templates, here, there, is_known):
        """templates: pieces of texts by path. here, there: the values of the facts in this boot and in the first one, as bytes. is_known:
        whether the first has a text."""
        self.templates = templates
        self.here, self.there = _pieces(here), _pieces(there)
        self.is_known = is_known
        self.alike = {}  # texts of the first boot by texts of this one; None where there are several
        for pieces in templates.values():
            text, there = _filled(pieces, self.here), _filled(pieces, self.there)
            self.alike[text] = there if self.alike.get(text, there) == there else None
        self.alike.pop("/", None)  # it is the separator of paths everywhere

    def finds_value_in(self, _text):
        """Returns True: any text may be one of these."""
        return True

    def translate(self, text):
        """Returns the text of the first boot, wherever the text is; None if it is the same, or not known."""
        there = self.alike.get(text if isinstance(text, str) else decode(bytes(text)))
        if there is None or self.is_known(text):
            return None
        return there if isinstance(text, str) else type(text)(encode(there))

    def there_at(self, path, thing):
        """Returns what the text of the first boot is at a path, if this object is what a thaw would make of it; else None."""
        pieces = self.templates.get(path)
        if pieces is None:
            return None
        is_bytes = isinstance(thing, (bytes, bytearray))
        text = decode(bytes(thing)) if is_bytes else str.__str__(thing) if isinstance(thing, str) else str(thing)
        if text != _filled(pieces, self.here):
            return None
        there = _filled(pieces, self.there)
        return encode(there) if is_bytes else there

    def nameless(self):
        """Returns the paths of the first boot by those of this one, for texts that are in their own paths: see object_paths.NAMELESS."""
        found = {}
        for path, pieces in self.templates.items():
            if path.startswith(NAMELESS):
                here = nameless_path(path[len(NAMELESS) :].partition("{")[0], _filled(pieces, self.here))
                found.setdefault(here, []).append(path)
        return found


def write(folder, number, values, walk, first, predictions, fingerprint):
    """Writes what a boot in form `number` holds. values: its facts, by name, as bytes. walk: the object_paths.Walk, not yet run. first: the
    fingerprints of the first boot, by path."""
    held = {}
    nameless = predictions.nameless()
    for path, (thing, content) in walk.run().items():
        held[path] = fingerprint(content)
        for there in nameless.get(path, ()):
            held[there] = first.get(there)
        if held[path] != first.get(path) and issubclass(type(thing), (*TEXTS, *walk.path_kinds)):
            there = predictions.there_at(path, thing)
            if there is not None:
                held[path] = fingerprint(walk.content(thing, type(thing), there))
    for path in nameless:
        if path not in first:
            held.pop(path, None)
    write_file(b"%s/%s%d" % (folder, FILE, number), marshal.dumps((start_form.forms(values), held)))


def alike(folder, held, place, noise):
    """Yields the features of the values, as start_form.forms, of each form in which a boot held the same. held: the fingerprints of a boot
    like the first one, by path. place, noise: as in evidence.py."""
    for name in map(encode, posix.listdir(folder)):
        if name.startswith(FILE):
            forms, other = marshal.loads(read_file(b"%s/%s" % (folder, name)))
            if all(other.get(path) == held.get(path) or place(path) in noise for path in {**held, **other}):
                yield forms


def _pieces(values):
    """Returns the text for each piece of a template: see evidence.Translation."""
    return [decode(piece) for value in values for piece in (value, value.rstrip(b"/"))]


def _filled(pieces, texts):
    return "".join([texts[piece] if type(piece) is int else piece for piece in pieces])

"""Another start as evidence: what of this process depends on facts about its start, such as HOME, and how a thaw renews
it.

If a program has read such facts, `snapboot freeze` boots it once more with other values (crates/freeze
programs/other_start.rs), and then again with the first ones. Each boot walks all objects that it holds
(object_paths.py). The values of the other boot occur in no other text. So a text that contains one corresponds to a
text of the first boot that contains the first value: the program only keeps the fact, and a thaw makes the text
anew. Any other difference is reported, unless two boots with equal values differ there, too (noise).

Further boots then have values in the forms that they have in everyday starts (everyday_forms.py).

Files in the control directory: `held` is written by the first boot, `held_otherwise` by the other one; `noise` lists
paths that differ between equal boots, `more` names of variables (more_variables.py); `found` is what a child found
for its parent."""

import gc
import marshal
import posix
import sys

from . import fork, holders_of_texts, start_form
from .channel import record
from .holders_of_texts import TEXTS, path_kinds
from .main_part import Fallback
from .report import write_file
from .request import decode, encode, read_file
from .seeding import standard_random
from .start_form import SYSTEM

# Processor time that a walk over the objects may take: so many seconds, or so many times what the boot took, if that is more. On a slow
# machine both take long.
LONGEST = 8
PATIENCE = 4
CWD = b"cwd"
HOME = b"HOME"
# Stands before and after the number in the value of a variable that only the other start has, as in zq7zq.
MARK = b"zq"


class Evidence:
    """The facts of this boot, and what the program keeps of them.

    request: which boot this is (`evidence`), and the values of the facts in the image (`facts`: name, value, both
    bytes)."""

    def __init__(self, request):
        self.role = request.evidence
        self.most_files = request.most_files
        self.form = request.form
        self.facts = request.facts
        self.folder = request.folder
        # Read before the program can change anything.
        self.here = {name: fact_of_process(name, posix.environ) or b"" for name in self.facts}
        self.here.update(request.system)
        self.more = {}
        self._fingerprint = None  # a function that returns a number for a text or bytes
        self._kept = []
        self._python_path = ()
        self._names = ()  # of facts that a thaw renews
        self._read = ()  # of facts that the program has read
        self._tried = set()  # see start_form.forms

    def show(self, name, value):
        """Records a variable that the program has looked up and is shown."""
        if name in self.here:
            self.here[name] = value

    def settle(self, context, reads, report):
        """Compares the objects of this process with those of other boots. Call it after a garbage collection.

        context: the Context, which renews the rest. reads: the Reads, which know what was read."""
        context.python_path.report_to(report)
        knows_start = reads.knows_start() or context.settings.tried
        if self.role not in ("other", "again") and not (self.role == "first" and (knows_start or context.python_path.is_known)):
            return
        if self.role == "first" and len(sys.modules) > self.most_files:
            return
        self._python_path = context.python_path
        if reads.comparisons is not None:
            for name, what in reads.comparisons.found.items():
                report.add_record("value_compared", name, what)
            return
        # Python's own hash is much faster, and equal in all boots with the same hash seed.
        self._fingerprint = hash if b"SNAPBOOT_HASHSEED" in context.environment.own else _fingerprint
        own, roots = context.environment.own_objects()
        own = own | {id(self), id(self.__dict__), id(self.facts), id(self.here), id(self.more), id(context.path_entry)}
        kept_by_front_end = set(map(id, roots.values()))
        here = posix.getcwdb()
        self.roots = roots if here == self.here.get(CWD) else {**roots, "os.getcwd()": here}
        random = standard_random()
        if random is not None:
            # A fork seeds it anew. If the program has not seeded it, each boot has another state.
            self.roots = {**self.roots, "random.getstate()": repr(random.getstate())}
        if self.role == "first":
            known = reads.names_read() if reads.was_read_whole() else None
            # If the walk takes longer, the program is not booted several times more.
            longest = max(LONGEST, int(PATIENCE * sum(posix.times()[:2])))
            if fork.in_child(lambda: self._write_held(own, known), longest):
                report.add("evidence", "1" if knows_start else "search path")
        elif self.role == "other":
            compare = self._write_form if self.form else self._compare_otherwise
            # In a child, as in the other boots: a fork leaves traces.
            if fork.in_child(lambda: compare(own)):
                self._add_found_to(report)
            else:
                report.add("differs", "its objects cannot be compared")
        else:
            self._read = reads.facts_read(self.facts)
            if fork.in_child(lambda: self._compare_again(own)):
                self._take(own, kept_by_front_end, report)
            else:
                report.add("differs", "its objects cannot be compared")
        self.roots = self._python_path = ()  # no thaw needs them
        self._fingerprint = None

    def renew(self, variables):
        """Puts the facts of this start in place. Raises Fallback or OSError if that is impossible.

        variables: the environment of this start, a mapping of bytes."""
        here = {}
        for name in self._read:
            value = fact_of_process(name, variables)
            here[name] = home_of_user() if name == HOME and value is None else value
        untried = start_form.problem({name: self.facts[name] for name in here}, here, self._tried)
        if untried is not None:
            raise Fallback("stale: %s" % untried)
        values = {name: here[name] for name in self._names}
        for name, value in values.items():
            if not value:
                raise Fallback("stale: %s is not set" % decode(name))
        if not self._kept:
            return
        if any(values[name] != self.facts[name] for name in self._names):
            real = []
            for name in self.facts:
                value = values.get(name, b"")
                real += [value, value.rstrip(b"/")]
            holders_of_texts.exchange(self._kept, real)
        self._kept = ()

    def folder_if_read(self):
        """Returns the current directory (bytes) if the program has read it, else None. Raises Fallback if it is
        gone."""
        try:
            return posix.getcwdb() if CWD in self._read else None
        except OSError:
            raise Fallback("the current directory, which the program has read, is gone") from None

    def _walk(self, own, translation=None):
        """Returns the Walk through the objects, not yet run."""
        from .object_paths import Walk  # here, since only a process that is not frozen needs it

        self._python_path.take_out()
        gc.collect()  # which leaves the same in all boots
        gc.disable()
        return Walk(own, self.roots, translation, self._fingerprint)

    def _write_held(self, own, known):
        """Writes what the first boot holds.

        known: names of the variables that the program has read by name, and of those that are set if it has read
        all."""
        rows, fingerprint = self._walk(own).run(), self._fingerprint
        write_file(self.folder + b"/held", marshal.dumps({path: fingerprint(content) for path, (_, content) in rows.items()}))
        if known is not None:
            from .more_variables import names_of

            read, there = known
            texts = {thing for thing, _ in rows.values() if type(thing) is str}
            names = names_of(texts, read | set(self.facts), there)
            # Without this file, the other boot reports no variables.
            if names is not None:
                write_file(self.folder + b"/more", b"\0".join(names))

    def more_variables(self):
        """Returns variables that the first boot did not have, for a program that reads all: see more_variables.py."""
        names = filter(None, read_file(self.folder + b"/more").split(b"\0"))
        self.more = {name: b"%s%d%s" % (MARK, number, MARK) for number, name in enumerate(names)}
        return self.more

    def _compare_otherwise(self, own):
        """In another start: writes what is held in the terms of the first boot, and records the differences."""
        from .object_names import content_of_text

        fingerprint, known = self._fingerprint, set()
        has_home = HOME in posix.environ or self.here.get(HOME) is None
        if not has_home:
            self.here[HOME] = home_of_user()
        first = marshal.loads(read_file(self.folder + b"/held"))
        if not has_home:
            # The home directory may occur in any text.
            known.update(first.values())
        translation = Translation(self.here, self.facts, lambda text: fingerprint(content_of_text(text)) in known)
        rows = self._walk(own | {id(known), id(first)}, translation).run()
        # Modules that only this start has loaded are compared through the objects that refer to them.
        more = [name for name in sys.modules if type(name) is str and name not in first]
        more = (*[name + "." for name in more], *["<%s." % name for name in more])
        noise = self._noise()
        marks = None
        if self.more:
            from .more_variables import Marks

            marks = Marks(self.more, MARK.decode())
            rows = marks.without(rows, first)
        held = {path: fingerprint(content) for path, (_, content) in rows.items()}
        different = [path for path, value in held.items() if first.get(path) != value]
        for path in [path for path in different if (path + ".").startswith(more)]:
            del held[path]
        templates = {path: translation.template(thing) for path, thing in translation.translated(rows)}
        templates = {path: template for path, template in templates.items() if template and path in held}
        if marks:
            held.update((path, first[path]) for path in marks.places if path in first)
        different = [path for path in different if path in held]
        different += [path for path in first if path not in held]
        different = [path for path in different if _place(path) not in noise]
        write_file(self.folder + b"/held_otherwise", marshal.dumps((held, templates)))
        picked = [b"picked=" + pattern for pattern in marks.patterns()] if marks else []
        self._write_found(picked + [b"differs=" + _plain(path) for path in different])

    def _write_form(self, own):
        """In a start whose values have another form: writes what is held in the terms of the first boot."""
        from . import everyday_forms
        from .object_names import content_of_text

        fingerprint, here = self._fingerprint, {name: self.here[name] for name in self.facts}
        first = marshal.loads(read_file(self.folder + b"/held"))
        _, texts = marshal.loads(read_file(self.folder + b"/held_otherwise"))
        known = set(first.values())
        templates = {path: pieces_of(template) for path, template in texts.items()}
        predictions = everyday_forms.Predictions(
            templates, here.values(), self.facts.values(), lambda text: fingerprint(content_of_text(text)) in known
        )
        own = own | set(map(id, (here, first, texts, known, templates, predictions.alike, predictions.here, predictions.there)))
        everyday_forms.write(self.folder, self.form, here, self._walk(own, predictions), first, predictions, fingerprint)
        self._write_found([])

    def _noise(self):
        """Returns the paths that differ between two equal boots."""
        try:
            return marshal.loads(read_file(self.folder + b"/noise"))
        except OSError:
            return frozenset()

    def _compare_again(self, own):
        """In a boot equal to the first: finds the texts that a thaw renews, and the differences that are not noise."""
        from . import everyday_forms

        rows, fingerprint = self._walk(own).run(), self._fingerprint
        first = marshal.loads(read_file(self.folder + b"/held"))
        other, texts = marshal.loads(read_file(self.folder + b"/held_otherwise"))
        noise, differs, held = [], [], []
        renewed, templates = {id(rows[path][0]) for path in texts if path in rows}, {}
        again = {path: fingerprint(content) for path, (_, content) in rows.items()}
        for path, here in again.items():
            thing = rows[path][0]
            if first.get(path) == here == other.get(path) and id(thing) not in renewed:
                continue
            template = texts.get(path, b"")
            if first.get(path) != here:
                noise.append(path)
                held += self._facts_in(template, path)
                continue
            if template and (_is_in_key(path) or path.endswith(" (state)")):
                held += self._facts_in(template, path)
            if other.get(path) != here:
                differs.append(path)
            elif templates.setdefault(id(thing), template) != template and isinstance(thing, TEXTS):
                differs.append(path)
        noise += [path for path in first if path not in rows]
        ignored = set(map(_place, noise))
        differs += [path for path in other if path not in rows and path not in ignored]
        write_file(self.folder + b"/noise", marshal.dumps(ignored))
        entries = [b"differs=" + _plain(path) for path in differs if _place(path) not in ignored]
        held += [entry for path, template in texts.items() if path not in rows for entry in self._facts_in(template, path)]
        entries += held
        entries += [b"renew=%d,%s" % (number, template) for number, template in templates.items() if template]
        tried = everyday_forms.alike(self.folder, again, _place, ignored)
        entries += [b"tried=" + marshal.dumps(forms).hex().encode() for forms in tried]
        self._write_found(entries)

    def _facts_in(self, template, path):
        """Returns entries that bind the facts in a text that cannot be renewed, or that differs in each boot."""
        numbers = {int(part) // 2 for at, part in enumerate((template or b"").split(b"\1")) if at % 2}
        names = list(self.facts)
        return [b"held=" + record(names[number], _plain(path)) for number in numbers]

    def _write_found(self, entries):
        write_file(self.folder + b"/found", b"".join([entry + b"\0" for entry in entries]))

    def _add_found_to(self, report):
        """Adds what the child found to the report. Returns the templates of texts, by id."""
        templates = {}
        for entry in read_file(self.folder + b"/found").split(b"\0")[:-1]:
            key, _, value = entry.partition(b"=")
            if key == b"renew":
                number, _, template = value.partition(b",")
                templates[int(number)] = pieces_of(template)
            elif key == b"tried":
                self._tried.update(marshal.loads(bytes.fromhex(value.decode())))
            else:
                report.add(key.decode(), value)
        return templates

    def _take(self, own, kept_by_front_end, report):
        """Finds all holders of the texts that are renewed."""
        templates = self._add_found_to(report)
        if not templates:
            return
        patterns = Templates(templates, list(self.facts))
        search = holders_of_texts.Search(patterns, own | {id(templates), id(patterns.__dict__)}, kept_by_front_end, path_kinds())
        search.run()
        self._kept = search.kept
        used = {piece for kept in search.kept for piece in kept.pieces or () if type(piece) is int}
        self._names = [name for number, name in enumerate(self.facts) if {2 * number, 2 * number + 1} & used]
        self._read = [name for name in self.facts if name in self._names or name in self._read]
        for name, problem in search.held:
            report.add_record("held", name, problem)


def fact_of_process(name, variables):
    """Returns the present value of a fact; None for a variable that is unset. variables: the environment."""
    if name == CWD:
        return posix.getcwdb()
    if name in SYSTEM:
        return encode(posix.uname()[SYSTEM[name]])
    return variables.get(name)


def shift_addresses(number):
    """Takes memory of each size that objects have, so that later objects have other addresses within a page. Boots in the same environment
    otherwise allocate alike. number: how much of each size it takes. Returns the memory, which the caller keeps."""
    header = sys.getsizeof(b"")
    in_pools = [bytes(size - header) for size in range(48, 513, 16) for _ in range(number)]
    # Larger objects, such as classes, come from malloc: first its free blocks, then new memory.
    return in_pools + [bytes(size + 16 * number - header) for size in range(528, 2048, 16)]


class Translation:
    """Translates texts of another start to the terms of the first one."""

    BATCH = 500  # texts that are looked through at once

    def __init__(self, values, facts, is_known):
        """values: those of this start. facts: those of the first. Both by name, as bytes. is_known: whether the first
        has a text."""
        self.is_known = is_known
        self.patterns = []  # value here, number of the fact, value there; the longest first
        for number, name in enumerate(facts):
            if values[name] and values[name] != facts[name]:
                self.patterns.append((values[name], number, facts[name]))
        self.patterns.sort(key=lambda pattern: -len(pattern[0]))
        self.kinds = (*TEXTS, *path_kinds())
        self.texts = [(decode(here), number, decode(there)) for here, number, there in self.patterns]

    def finds_value_in(self, text):
        """Returns whether a text contains a value of this start."""
        for here, _, _ in self.texts:
            if here in text:
                return True
        return False

    def translate(self, text):
        """Returns the text of the first boot; None if it is the same."""
        pieces = self._split(text)
        if pieces is None or self.is_known(text):
            return None
        there = {}
        for _here, number, value in self.texts if isinstance(text, str) else self.patterns:
            there[2 * number], there[2 * number + 1] = value, value.rstrip("/" if isinstance(value, str) else b"/")
        return text[:0].join([there[piece] if type(piece) is int else piece for piece in pieces])

    def translated(self, rows):
        """Yields those rows of a walk that are texts and may differ: pairs of a path and the object."""
        if not self.patterns:
            return
        texts = [(path, thing) for path, (thing, _) in rows.items() if type(thing) is str]
        for at in range(0, len(texts), self.BATCH):
            some = texts[at : at + self.BATCH]
            if self.finds_value_in("\0".join([text for _, text in some])):
                yield from some
        yield from ((path, thing) for path, (thing, _) in rows.items() if type(thing) is not str and issubclass(type(thing), self.kinds))

    def template(self, thing):
        """Returns the pieces of a text that differs, as bytes without a NUL; empty for any other object."""
        if issubclass(type(thing), self.kinds):
            text = str.__str__(thing) if isinstance(thing, str) else thing if isinstance(thing, TEXTS) else str(thing)
            pieces = self._split(text)
            if pieces is not None:
                return b"".join([b"\1%d\1" % piece if type(piece) is int else encoded(piece) for piece in pieces])
        return b""

    def _split(self, text):
        patterns = self.texts if isinstance(text, str) else self.patterns
        for here, _, _ in patterns:
            if here in text:
                break
        else:
            return None
        pieces = [text]
        for pattern in patterns:
            pieces = [part for whole in pieces for part in ([whole] if type(whole) is int else self._parts(whole, *pattern[:2]))]
        return pieces

    def _parts(self, whole, here, number):
        slash = "/" if isinstance(whole, str) else b"/"
        parts = whole.split(here)
        found = []
        for at, part in enumerate(parts):
            if at:
                # Before a slash, the root directory contributes nothing.
                found.append(2 * number + bool(part[:1] == slash))
            if part:
                found.append(part)
        return found


class Templates:
    """The interface through which `holders_of_texts` finds texts: those of these ids are made anew of their pieces."""

    def __init__(self, templates, names):
        self.templates = templates
        self.ids = frozenset(templates)
        self.names = names

    def split(self, text):
        """See secret_values.Patterns."""
        pieces = self.templates.get(id(text))
        if pieces is None or isinstance(text, str):
            return pieces
        return pieces if not isinstance(text, (bytes, bytearray)) else [piece if type(piece) is int else encode(piece) for piece in pieces]

    def name(self, number):
        """Returns the name of a piece's fact."""
        return self.names[number // 2].decode()


def home_of_user():
    """Returns the directory that replaces an unset HOME, as bytes; empty if it is unknown."""
    import pwd

    try:
        return encode(pwd.getpwuid(posix.getuid()).pw_dir)
    except KeyError:
        return b""


def pieces_of(template):
    """Returns the pieces of a template: texts, and numbers of facts."""
    parts = template.split(b"\1")
    return [int(part) if at % 2 else part.decode("utf-8", "surrogatepass") for at, part in enumerate(parts) if part]


def encoded(text):
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)


# Each entry is a line and ends with a NUL.
PLAIN = bytes.maketrans(b"\n\0", b"  ")


def _plain(path):
    """Returns a path as bytes on one line."""
    return encoded(path).translate(PLAIN)


def _is_in_key(path):
    """Returns whether a text is part of a key or of an item of a set. Changed there, it would not be found again."""
    if path.startswith("an object of "):
        return False  # see NAMELESS
    _, mark, rest = path.partition(" (key)" if " (key)" in path else "}")
    return bool(mark and rest.strip("#0123456789 "))


def _place(path):
    """Returns a path without its number, for objects that share a path and have no order."""
    name, _, number = path.rpartition(" #")
    return name if number.isdigit() else path


def _fingerprint(content):
    """Returns a number that represents a text or bytes."""
    from _blake2 import blake2b

    return int.from_bytes(blake2b(encoded(content), digest_size=8).digest(), "little")

"""Variables that another start has more, to find out what a program wants that goes through the whole environment (evidence.py).

Whoever picks variables compares their names with texts: a whole name, a beginning or an end. All texts of the program are known, so there
are variables named after each: `HF_`, `HF_ZQPROXY`, in capitals and in small letters. Their values have marks by which it is seen which of
them were kept, and so what counts.
"""

import re
import sys

# A program with more words has too many for each to make variables.
MOST = 100000
# A longer text, or one with a space, is for people.
LONGEST = 256
# Between the beginning and the end of a name.
BETWEEN = b"ZQ"
BETWEEN_TEXT = BETWEEN.decode()
# How the path of a key ends: see object_paths.py.
KEY = " (key)"
ORDER = " (order)"
# A copy of the environment has more marks than this.
MANY = 1000


def names_of(texts, known, there):
    """Names of variables: those in `there`, and after the words in these texts and in the code of all modules; without those in `known`. A
    list of bytes, or None where there are too many words."""
    found = set()
    for text in texts:
        _add_texts(text, found)
    for module in list(sys.modules.values()):
        spec = getattr(module, "__spec__", None)
        try:
            code = spec.loader.get_code(spec.name)
        except Exception:
            continue  # it is of C, or of no file
        if code is not None:
            _add_texts(code, found)
    words = set()
    for text in found:
        words.update(re.findall("[A-Za-z0-9_]{2,40}", text))
    words = sorted({word.encode().upper() for word in words})
    if len(words) > MOST:
        return None
    names = dict.fromkeys(sorted(there))
    # Who goes by a pattern may want letters only.
    letters = [word for word in words if word.isalpha()] or words
    for number, word in enumerate(words):
        others = words[(number + len(words) // 2) % len(words)], letters[number % len(letters)]
        pairs = [word + BETWEEN + other for other in others]
        names.update(dict.fromkeys((word, word.lower(), *pairs, *[name.lower() for name in pairs])))
    return [name for name in names if name not in known]


def _add_texts(thing, texts):
    """Adds the texts in a constant of code, and in what that holds."""
    if type(thing) is str:
        if len(thing) < LONGEST and " " not in thing:
            texts.add(thing)
    elif type(thing) in (tuple, frozenset):
        for item in thing:
            _add_texts(item, texts)
    elif hasattr(thing, "co_consts"):
        texts.update(thing.co_names)
        texts.update(thing.co_varnames)
        for item in thing.co_consts:
            _add_texts(item, texts)


class Marks:
    """What of a process comes from such variables."""

    def __init__(self, names, mark):
        """names: the variables, by name. mark: before and behind the numbers of their values."""
        self.names = list(names)
        self.numbers = {name: number for number, name in enumerate(self.names)}
        self.mark = mark
        self.pattern = re.compile(mark + "([0-9]+)" + mark)
        self.found = set()
        self.places = set()

    def without(self, rows, first):
        """What a walk has found, but for copies of the environment, and for what comes of the variables. rows: see Walk.run. first: what
        the first boot holds, by path."""
        counts, tables = {}, set()
        for path, (thing, content) in rows.items():
            if type(thing) is dict:
                tables.add(path)
            elif self.mark in content and self.pattern.search(content):
                holder = path[: path.rfind("[")]
                counts[holder] = counts.get(holder, 0) + 1
        copies = {path for path, count in counts.items() if count > MANY and path in tables}
        # Where the first boot may hold anything.
        self.places = {path for path in first if path[: path.rfind("[")] in copies}
        marked, entries = set(), set()
        for path, (_, content) in rows.items():
            # A thaw makes copies anew (copies.py).
            if path in copies or path[: path.rfind("[")] in copies:
                marked.add(path)
            elif self._note(path) | self._note(content):
                marked.add(path)
                if KEY in path:
                    entries.add(path.partition(KEY)[0])
        # With a part of a key goes all that stands for the key.
        entries = tuple(entries) if len(entries) < MANY else ()
        # And the order of the keys.
        marked.update([path[: path.rfind("[")] + ORDER for path in marked] + [path + ORDER for path in copies])
        marked.update([path + KEY for path in marked])
        self.places.update(marked)
        return {path: row for path, row in rows.items() if path not in marked and not path.startswith(entries)}

    def _note(self, content):
        """Notes the variables that a text comes from. Returns whether there are any."""
        found = {int(number) for number in self.pattern.findall(content)} if self.mark in content else set()
        if BETWEEN_TEXT in content.upper():
            names = [name.encode() for name in re.findall("[A-Za-z0-9_]+", content) if BETWEEN_TEXT in name.upper()]
            found.update(self.numbers[name] for name in names if name in self.numbers)
        self.found |= found
        return bool(found)

    def patterns(self):
        """Patterns of names that count: a sorted list of bytes."""
        found = set()
        for number in self.found:
            name = self.names[number]
            for between in (BETWEEN, BETWEEN.lower()):
                if between in name:
                    start, _, end = name.partition(between)
                    found |= {start + b"*", b"*" + end}
                    break
            else:
                found.add(name)
        return sorted(found)

"""Additional variables for another start, which show what a program picks when it goes through the whole environment (evidence.py).

Code that picks variables compares their names with texts: a whole name, a beginning or an end. All texts of the program are known, so
variables are named after each of them: `HF_`, `HF_ZQPROXY`, in capitals and in lower case. Marks in their values show which variables the
program kept, and so which count.
"""

import re
import sys

# A program with more words has too many to create variables for each.
MOST = 100000
# A longer text, or one with a space, is meant for people.
LONGEST = 256
# Stands between the beginning and the end of a name.
BETWEEN = b"ZQ"
BETWEEN_TEXT = BETWEEN.decode()
# The end of a key's path: see object_paths.py.
KEY = " (key)"
ORDER = " (order)"
# A container with at least this many marks is a copy of the environment.
MANY = 1000


def names_of(texts, known, there):
    """Returns names of variables: those in `there`, and those made from words in these texts and in the code of all modules; without those
    in `known`. A list of bytes, or None if there are too many words."""
    found = set()
    for text in texts:
        _add_texts(text, found)
    for module in list(sys.modules.values()):
        spec = getattr(module, "__spec__", None)
        try:
            code = spec.loader.get_code(spec.name)
        except Exception:
            continue  # it is in C, or has no file
        if code is not None:
            _add_texts(code, found)
    words = set()
    for text in found:
        words.update(re.findall("[A-Za-z0-9_]{2,40}", text))
    words = sorted({word.encode().upper() for word in words})
    if len(words) > MOST:
        return None
    names = dict.fromkeys(sorted(there))
    # A program that matches a pattern may accept letters only.
    letters = [word for word in words if word.isalpha()] or words
    for number, word in enumerate(words):
        others = words[(number + len(words) // 2) % len(words)], letters[number % len(letters)]
        pairs = [word + BETWEEN + other for other in others]
        names.update(dict.fromkeys((word, word.lower(), *pairs, *[name.lower() for name in pairs])))
    return [name for name in names if name not in known]


def _add_texts(thing, texts):
    """Adds the texts in a constant of code and in its parts."""
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
    """The parts of a process that come from such variables."""

    def __init__(self, names, mark):
        """names: the variables, by name. mark: the mark around the numbers in their values."""
        self.names = list(names)
        self.numbers = {name: number for number, name in enumerate(self.names)}
        self.mark = mark
        self.pattern = re.compile(mark + "([0-9]+)" + mark)
        self.found = set()
        self.places = set()

    def without(self, rows, first):
        """Returns the rows of a walk, without copies of the environment and without what comes from the variables. rows: see Walk.run.
        first: the contents of the first boot, by path."""
        counts, tables = {}, set()
        for path, (thing, content) in rows.items():
            if type(thing) is dict:
                tables.add(path)
            elif self.mark in content and self.pattern.search(content):
                holder = path[: path.rfind("[")]
                counts[holder] = counts.get(holder, 0) + 1
        copies = {path for path, count in counts.items() if count > MANY and path in tables}
        # Here the first boot may hold anything.
        self.places = {path for path in first if path[: path.rfind("[")] in copies}
        marked, entries = set(), set()
        for path, (_, content) in rows.items():
            # A thaw renews copies (copies.py).
            if path in copies or path[: path.rfind("[")] in copies:
                marked.add(path)
            elif self._record(path) | self._record(content):
                marked.add(path)
                if KEY in path:
                    entries.add(path.partition(KEY)[0])
        # If part of a key is marked, the value goes with it.
        entries = tuple(entries) if len(entries) < MANY else ()
        # And the order of the keys.
        marked.update([path[: path.rfind("[")] + ORDER for path in marked] + [path + ORDER for path in copies])
        marked.update([path + KEY for path in marked])
        self.places.update(marked)
        return {path: row for path, row in rows.items() if path not in marked and not path.startswith(entries)}

    def _record(self, content):
        """Records the variables from which a text comes. Returns whether there are any."""
        found = {int(number) for number in self.pattern.findall(content)} if self.mark in content else set()
        if BETWEEN_TEXT in content.upper():
            names = [name.encode() for name in re.findall("[A-Za-z0-9_]+", content) if BETWEEN_TEXT in name.upper()]
            found.update(self.numbers[name] for name in names if name in self.numbers)
        self.found |= found
        return bool(found)

    def patterns(self):
        """Returns the patterns of names that count: a sorted list of bytes."""
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

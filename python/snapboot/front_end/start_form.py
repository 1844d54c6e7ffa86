"""Whether other starts were tried with facts of the same form as those of this start.

A program that keeps HOME may also make decisions that only some values show: it escapes spaces, converts names to
small letters, or compares HOME with the current directory. The values of the other start (crates/freeze
boot_inputs/elsewhere.rs) are long and contain capitals, digits, dots and dashes; none is part of another, except that all lie in
one directory. Further boots (everyday_forms.py) have tried the topmost directory as a value, and values that relate to each other as in
everyday starts. If the values of this start contain anything else, or relate to each other in another way, it is an ordinary start."""

import posix

CWD = b"cwd"
PATH = b"PATH"
HOST = b"hostname"
# The facts that uname(2) returns about host and kernel, and their positions in its result.
SYSTEM = {HOST: 1, b"kernel": 2, b"kernel-version": 3}
ALLOWED = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
# Bytes. The paths of the other start are longer.
LONGEST_PATH = 200
LONGEST_NAME = 40
TOP = b"/"
# The relation of two values of the other start.
UNRELATED = (False,) * 6


def problem(image, here, tried):
    """Returns what was not tried, in words; None if everything was.

    image, here: the values of the facts that the program has read, by name, as bytes; None for one that is unset. tried: what `forms`
    returned for further values that were tried."""
    changed = [name for name in image if here[name] != image[name]]
    for name in changed:
        if here[name] is not None and not (_is_tried(name, here[name], image[name]) or (name, here[name]) in tried):
            return "%s has a value of a form that was not tried" % name.decode()
    for name in changed:
        if _is_directory(name, image) and here[name] is not None:
            place = _place(here[name])
            if place not in (_place(image[name]), USUAL) and (name, place) not in tried:
                return "%s leads elsewhere, or belongs to another user" % name.decode()
    for name, other, relation in _relations(here):
        known = relation in (UNRELATED, _relation(image[name], image[other])) or (name, other, relation) in tried
        if name in changed and not known:
            return "%s and %s relate in another way than in the boot" % (name.decode(), other.decode())
    return None


def forms(values):
    """Returns the features of these values that a start may have if they were tried: a set of pairs of a name and TOP, of pairs of a name
    and whose directory it leads to, and of triples of two names and their relation."""
    tops = {(name, TOP) for name, value in values.items() if value == TOP}
    places = {(name, _place(value)) for name, value in values.items() if value and _is_directory(name, values)}
    return tops.union(places, _relations(values))


def _relations(values):
    names = [name for name in values if name != PATH and values[name] is not None]
    return [(name, other, _relation(values[name], values[other])) for name in names for other in names if other != name]


def _is_tried(name, value, before):
    if name in SYSTEM and name != HOST:
        return True  # whatever kernels are called; what follows from their order, the other start shows with the oldest
    if name == PATH:
        folders, known = value.split(b":"), before.split(b":")
        repeats = len(set(folders)) < len(folders) and len(set(known)) == len(known)
        return not repeats and all(folder in known or _is_plain_path(folder) for folder in folders)
    if before[:1] == b"/":
        return _is_plain_path(value)
    return _is_plain(value) and len(value) <= LONGEST_NAME


def _is_directory(name, image):
    return name not in (CWD, PATH) and image[name][:1] == b"/"


def _is_plain_path(value):
    parts = value.split(b"/")
    return parts[0] == b"" and len(parts) > 1 and len(value) <= LONGEST_PATH and all(map(_is_plain, parts[1:]))


def _is_plain(part):
    return part not in (b"", b".", b"..") and not part.translate(None, ALLOWED)


def _relation(one, other):
    return one == other, one in other, other in one, one.startswith(other + b"/"), other.startswith(one + b"/"), TOP in (one, other)


def _place(home):
    """Returns whether a directory is given by its real path and belongs to the user; the usual answers if it is
    missing."""
    try:
        found = posix.lstat(home)
        above = home
        while len(above) > 1:
            if posix.lstat(above).st_mode & 0o170000 == 0o120000:
                return (False, found.st_uid == posix.getuid())
            above = above[: above.rfind(b"/")]
        return (True, found.st_uid == posix.getuid())
    except OSError:
        return USUAL


USUAL = (True, True)

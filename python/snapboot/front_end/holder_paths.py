"""Finds where in the program an object is held, in words that its author knows: `app.rng._gen`."""

import sys

MAX_VISITED = 2000000


def paths_to(objects):
    """Returns the shortest path from a module to each of `objects`, in their order; the type for objects that no module leads to."""
    wanted = {id(one): None for one in objects}
    missing = len(wanted)
    level = [(module, name) for name, module in list(sys.modules.items()) if type(module) is type(sys)]
    seen = {id(module) for module, _ in level}
    seen.add(id(objects))
    while level and missing and len(seen) < MAX_VISITED:
        found = []
        for holder, path in level:
            for part, way in _parts(holder):
                if id(part) in seen or id(type(part)) in PLAIN or type(part) is type(sys):
                    continue
                seen.add(id(part))
                place = path + way
                if id(part) in wanted:
                    wanted[id(part)] = place
                    missing -= 1
                found.append((part, place))
        level = found
    return [wanted[id(one)] or "an object of %s" % _name(type(one)) for one in objects]


def _parts(holder):
    """Returns what an object holds: pairs of an object and the step that leads to it from the holder."""
    kind = type(holder)
    if kind is dict:
        yield from [(value, "[%.40r]" % (key,)) for key, value in list(holder.items()) if id(type(key)) in PLAIN]
        return
    if kind is list or kind is tuple:
        yield from [(part, "[%d]" % index) for index, part in enumerate(list(holder))]
        return
    if kind is FUNCTION:
        for name, cell in zip(holder.__code__.co_freevars, holder.__closure__ or ()):
            try:
                yield cell.cell_contents, ".<%s>" % name
            except ValueError:
                pass  # not filled yet
        for part in holder.__defaults__ or ():
            yield part, ".<default>"
        return
    if kind is METHOD:
        yield holder.__self__, ".__self__"
        return
    bases = BASES(kind)  # bypasses the metaclass
    if any(base is type for base in bases):  # its `__class__` may claim anything
        names = NAMES(holder)
    else:
        try:
            names = object.__getattribute__(holder, "__dict__")
        except Exception:
            names = {}
        for base in bases:
            for name, slot in list(NAMES(base).items()):
                if id(type(slot)) in SLOTS:
                    try:
                        yield slot.__get__(holder, kind), "." + name
                    except Exception:
                        pass  # not set
    if type(names) is dict or type(names) is type(type.__dict__):
        yield from [(part, ".%s" % name) for name, part in list(names.items())]


def _name(kind):
    return kind.__module__ + "." + kind.__qualname__


BASES, NAMES = type.__dict__["__mro__"].__get__, type.__dict__["__dict__"].__get__
FUNCTION = type(_name)
METHOD = type(type("", (), {"m": _name})().m)
# Types by id: a class may define `__eq__` and then have no hash.
SLOTS = frozenset(map(id, (type(FUNCTION.__code__), type(FUNCTION.__globals__))))
PLAIN = frozenset(map(id, (str, bytes, int, float, bool, complex, type(None), type(Ellipsis))))

"""Compares the code that an archive has with what Python compiles, object by object.

Arguments: `keep`, `keep unknown` or `compare`, the folder of the archive's Python part, then source files. `keep` has the archive that
SNAPBOOT_ARCHIVE names keep their code; `keep unknown` does so as in a Python whose layout is unknown. `compare`, in another process,
prints each difference, and ends with a line of how many files were compared.
"""

import _imp
import ctypes
import dis
import sys

CODE = type((lambda: 0).__code__)
FIELDS = [name for name in dir(CODE) if name.startswith("co_") and name not in ("co_lnotab", "co_consts")]


class Unknown:
    """Code whose fields lie in other places: an object of that size, with the attributes of code."""

    __slots__ = tuple("field_%d" % number for number in range((CODE.__basicsize__ - object.__basicsize__) // 8))

    def __getattr__(self, name):
        return getattr(native.__code__, name)


def native(folder, sample):
    names = {"__name__": "snapboot.archive.imports", "__file__": folder + "/imports.py"}
    with open(names["__file__"], encoding="utf-8") as file:
        exec(compile(file.read(), names["__file__"], "exec"), names)
    library = names["load_library"](folder)
    reason = library.open("/program", names["description"](), _imp.extension_suffixes(), names["tag"](), sample)
    if reason is not None:
        raise SystemExit(reason)
    return library


def compiled(path):
    with open(path, "rb") as file:
        return compile(file.read(), path, "exec", dont_inherit=True)


def constant_text(constant):
    return repr(sorted(constant, key=repr)) if isinstance(constant, frozenset) else repr(constant)


def codes(code):
    """It and all code below it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, type(code)):
            yield from codes(constant)


def number(code):
    """That by which specialised calls know the code, from 3.12 on."""
    return ctypes.c_uint32.from_address(id(code) + 92).value


def parts(code):
    """Everything of a code object that can be seen, in a form that tells 1 from True and from 1.0."""
    for name in FIELDS:
        value = getattr(code, name)
        yield name, list(value()) if callable(value) else value
    yield "types of constants", [type(constant) for constant in code.co_consts]
    yield "constants", [constant_text(constant) for constant in code.co_consts if not isinstance(constant, type(code))]
    yield "instructions", [instruction._replace(argval=None, argrepr="") for instruction in dis.get_instructions(code)]
    if not any(constant != constant for constant in code.co_consts):  # the hash of a NaN is that of its place
        yield "hash", hash(code)


def differences(path, one, other):
    pairs = list(zip(codes(one), codes(other)))  # noqa: B905
    if len(pairs) != len(list(codes(one))) or len(pairs) != len(list(codes(other))):
        yield "%s: another number of code objects" % path
    for ours, loaded in pairs:
        seen = dict(parts(loaded))
        for name, value in parts(ours):
            if value != seen.get(name):
                yield "%s, line %d, %s: %r, not %r" % (path, ours.co_firstlineno, name, seen.get(name), value)
        for name in loaded.co_names + loaded.co_varnames + (loaded.co_name,):
            if name.isidentifier() and sys.intern("".join(list(name))) is not name:
                yield "%s: %r is not interned" % (path, name)
    if sys.version_info >= (3, 12):
        numbers = [number(code) for pair in pairs for code in pair]
        if 0 in numbers or len(set(numbers)) != len(numbers):
            yield "%s: code objects have the same number" % path


def main(what, folder, *paths):
    library = native(folder, Unknown() if what == "keep unknown" else native.__code__)
    count = 0
    for path in paths:
        try:
            code = compiled(path)
        except (SyntaxError, ValueError):
            continue
        source = library.source_at(path)
        if what.startswith("keep"):
            source.keep(code, None, path)
            continue
        loaded = source.load(path)
        if loaded is None:
            print("%s: the archive has no code" % path)
            continue
        count += 1
        for difference in differences(path, code, loaded):
            print(difference)
        if source.load(path) is not None and len(list(codes(code))) > 1:
            print("%s: laid out twice, or not at all" % path)
    print(library.flush() or "%d files" % count)


main(*sys.argv[1:])

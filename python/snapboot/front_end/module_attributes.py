"""Finds modules that set attributes of other modules while they are imported.

Importing such a module early would change the order: an attribute that the main part sets before or after that import would end up with the
other value, and a start that never imports the module would still see its change. So the import is left to the program, unless every known
start imports the module, neither the main part nor a module left to the program names the attribute, and no other module sets it.
"""

import _operator
import sys

from .modules import MODULE, NAMES, is_module
from .process_state import HARMLESS_PATCHES


class Attributes:
    """The attributes of all modules, as of the last look.

    files: the file of each module of a training run, by module name. always: the modules that every run has imported. main: the source of
    the main part, or None where it may be any. is_watch: returns whether a value is a wrapper that the front end itself has installed.
    """

    def __init__(self, files, always, main, is_watch):
        self._files = files
        self._always = always
        self._is_watch = is_watch
        self._main = None if main is None else _names_in_source(main)
        self._named = {}  # by module: the names in its code
        self._held = _attributes_by_module()

    def conflicts(self, left):
        """Compares with the last look. Returns the modules that must be left out, each with the reason. left: the names of modules that are
        left out anyway."""
        before, self._held = self._held, _attributes_by_module()
        found = {}
        new = [name for name in self._held if name not in before and name in self._files]
        for owner, key, value in _changed(before, self._held):
            if self._is_watch(value) or "%s.%s" % (owner, key) in HARMLESS_PATCHES:
                continue
            names = self._setters(owner.rpartition(".")[2], key, new)
            if names and self._always.issuperset(names) and not self._is_named(key, left) and not _is_set(owner, key, before):
                continue
            for name in names:
                found.setdefault(name, "sets %s.%s" % (owner, key))
        return found

    def _setters(self, owner, key, new):
        """Returns the modules whose code sets the attribute or, where no code shows that, the modules that name both."""
        setters = [name for name in new if _sets_in_file(name, self._files[name], owner, key)]
        return setters or [name for name in new if self._names(name).issuperset((owner, key))]

    def _is_named(self, key, left):
        return self._main is None or key in self._main or any(key in self._names(name) for name in left if name in self._files)

    def _names(self, module):
        if module not in self._named:
            self._named[module] = _names_in_file(module, self._files[module])
        return self._named[module]


def _attributes_by_module():
    """Returns, by module name: the module, whether it makes up attributes, and its attributes by name."""
    held = {}
    for name, module in list(sys.modules.items()):
        names = NAMES(module) if is_module(module) else None
        if type(names) is dict and type(name) is str:
            is_lazy = (type(module) is not MODULE or "__getattr__" in names) and name != "__main__"  # `__main__` is watched
            held[name] = module, is_lazy, [*names], [*names.values()]
    return held


def _changed(before, now):
    """Returns each changed or new attribute of a module that existed before, with its new value."""
    for owner, (module, is_lazy, keys, values) in before.items():
        same, _, new_keys, new_values = now.get(owner, (None, None, (), ()))
        if same is not module:
            yield "sys.modules", owner, same
            continue
        if len(keys) == len(new_keys) and not any(map(_operator.is_not, values, new_values)):
            continue
        old = dict(zip(keys, values))
        for key, value in zip(new_keys, new_values):
            if type(key) is not str or key in old and old[key] is value:
                continue
            # Skips submodules that an import sets, values that a lazy module caches, and names that no program would choose.
            is_import = sys.modules.get("%s.%s" % (owner, key)) is value
            if not (is_import or is_lazy and key not in old or key[:2] == "__" and owner != "builtins"):
                yield owner, key, value


def _is_set(owner, key, held):
    """Returns whether a function or module of these sets it, too."""
    owner = owner.rpartition(".")[2]
    for name, (module, *_) in held.items():
        path = getattr(NAMES(module).get("__spec__"), "origin", None)
        if type(path) is str and _sets_in_file(name, path, owner, key):
            return True
    return False


def _sets_in_file(module, path, owner, key):
    code = _code_in_file(module, path)
    return code is not None and _sets(code, owner, key)


def _sets(code, owner, key):
    if key in code.co_names and (owner in code.co_names or owner in code.co_varnames):
        number = code.co_names.index(key)
        instructions = code.co_code
        if any(instructions[at] in SETTING and instructions[at + 1] == number & 0xFF for at in range(0, len(instructions), 2)):
            return True
    return any(_sets(constant, owner, key) for constant in code.co_consts if type(constant) is type(code))


def _names_in_source(source):
    try:
        return _names_in_code(compile(source, "<main>", "exec", 0, True), set())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _names_in_file(module, path):
    code = _code_in_file(module, path)
    return set() if code is None else _names_in_code(code, set())


def _code_in_file(module, path):
    try:
        return SourceFileLoader(module, path).get_code(module)
    except Exception:  # for example an extension module
        return None


def _names_in_code(code, found):
    """Returns all possible names in code: of attributes and variables, and texts, which may be passed to `setattr`."""
    found.update(code.co_names, [name.rpartition(".")[2] for name in code.co_names if "." in name])
    for constant in code.co_consts:
        if type(constant) is type(code):
            _names_in_code(constant, found)
        elif type(constant) is str:
            found.add(constant)
        elif type(constant) is tuple:
            found.update(part for part in constant if type(part) is str)
    return found


# STORE_ATTR and DELETE_ATTR of the module opcode.
SETTING = (95, 96) if sys.version_info < (3, 13) else (108, 63)
SourceFileLoader = sys.modules["_frozen_importlib_external"].SourceFileLoader

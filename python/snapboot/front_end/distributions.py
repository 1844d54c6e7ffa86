"""Which distributions `importlib.metadata` looks up while the program boots.

It lists a folder and looks among the names for those that tell of the distribution: only these count, or all names that tell of
one where it looked for all. It drops what it keeps of a list by itself when the folder has changed. Wrappers around its own methods
watch it, and are taken off before the freeze. Where a module was made in a way that is not known here, all names count.
"""

import sys


class Distributions:
    """Watches from its making on, until `stop`.

    lists: how often each folder was listed by those who tell what they look for; it is counted on.
    """

    def __init__(self, lists):
        self.looked_up = {}  # by folder: the names; an empty one stands for all
        self._lists = lists
        self._loaders = []
        self._originals = []
        for name in MODULES:
            if name in sys.modules:
                self._watch(sys.modules[name])

    def stop(self):
        """Takes the wrappers off."""
        for loader in self._loaders:
            loader.__dict__.pop("exec_module", None)
        for class_, name, original in self._originals:
            setattr(class_, name, original)

    def expect(self, name, spec):
        """A module was found, and will perhaps be loaded."""
        loader = getattr(spec, "loader", None)
        if name not in MODULES or not hasattr(loader, "__dict__"):
            return
        execute = loader.exec_module

        def exec_module(module):
            loader.__dict__.pop("exec_module", None)
            execute(module)
            self._watch(module)

        loader.exec_module = exec_module
        self._loaders.append(loader)

    def _watch(self, module):
        names = module.__dict__
        path, prepared = names.get("FastPath"), names.get("Prepared")
        try:
            search, children = path.__dict__["search"], path.__dict__["children"]
            compares = names["Lookup"].__init__ if "Lookup" in names else search
            texts = set(_texts(compares.__code__))
        except (AttributeError, KeyError):
            return
        if not {"egg-info"} <= texts <= COMPARED:
            return
        looked_up, lists = self.looked_up, self._lists

        def noting_search(self, name):
            if _is_absolute(self.root) and type(name) is prepared:
                looked_up.setdefault(self.root, set()).add(_told(name.name))
            return search(self, name)

        def noting_children(self):
            if self.root in looked_up and _is_called_by(search.__code__):
                lists[self.root] = lists.get(self.root, 0) + 1
            return children(self)

        for name, wrapper in (("search", noting_search), ("children", noting_children)):
            self._originals.append((path, name, path.__dict__[name]))
            setattr(path, name, wrapper)


def _is_absolute(root):
    return type(root) is str and root.startswith("/")


def _told(name):
    """A name as it is told: what cannot be compared letter by letter stands for all."""
    return name if name and name.isascii() and "\0" not in name else ""


def _is_called_by(code):
    """Whether the caller's caller is that code, by way of a cache at most."""
    frame = sys._getframe(2)
    for _ in range(NEAR):
        if frame is None or frame.f_code is code:
            break
        frame = frame.f_back
    return frame is not None and frame.f_code is code


def _texts(code):
    """All texts in a function but for what documents it."""
    for constant in code.co_consts:
        if type(constant) is str:
            if "\n" not in constant:
                yield constant
        elif type(constant) is tuple:
            yield from (text for text in constant if type(text) is str)


MODULES = ("importlib.metadata", "importlib_metadata")
# What names are compared with.
COMPARED = {".dist-info", ".egg-info", ".egg", "egg-info", ".", "-"}
# More frames than this are not between a search and its list.
NEAR = 4

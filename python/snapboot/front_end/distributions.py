"""Records which distributions `importlib.metadata` looks up while the program boots.

It lists a folder and searches the names for those that belong to the distribution. Only these names count, or all names of distributions if
it looked for all of them. It drops its cached list by itself when the folder has changed. Wrappers around its methods record the look-ups,
and are removed before the freeze. Where a module was created in an unfamiliar way, all names count.
"""

import sys


class Distributions:
    """Records look-ups from construction until `stop()`.

    lists: how often each folder was listed by callers that say what they look for; kept up to date.
    """

    def __init__(self, lists):
        self.looked_up = {}  # by folder: the names; the empty name stands for all
        self._lists = lists
        self._loaders = []
        self._originals = []
        for name in MODULES:
            if name in sys.modules:
                self._watch(sys.modules[name])

    def stop(self):
        """Removes the wrappers."""
        for loader in self._loaders:
            loader.__dict__.pop("exec_module", None)
        for class_, name, original in self._originals:
            setattr(class_, name, original)

    def expect(self, name, spec):
        """Called when a module was found, which may be loaded next."""
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
                looked_up.setdefault(self.root, set()).add(_reported_name(name.name))
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


def _reported_name(name):
    """Returns the name as it is reported: empty, which stands for all, if it cannot be compared letter by letter."""
    return name if name and name.isascii() and "\0" not in name else ""


def _is_called_by(code):
    """Returns whether the caller's caller is that code, directly or through a cache."""
    frame = sys._getframe(2)
    for _ in range(NEAR):
        if frame is None or frame.f_code is code:
            break
        frame = frame.f_back
    return frame is not None and frame.f_code is code


def _texts(code):
    """Returns all texts in a function except its documentation."""
    for constant in code.co_consts:
        if type(constant) is str:
            if "\n" not in constant:
                yield constant
        elif type(constant) is tuple:
            yield from (text for text in constant if type(text) is str)


MODULES = ("importlib.metadata", "importlib_metadata")
# Texts that names are compared with.
COMPARED = {".dist-info", ".egg-info", ".egg", "egg-info", ".", "-"}
# A search and its listing are at most this many frames apart.
NEAR = 4

"""Compiles modules whose code is not in the boot archive yet. Only starts that fill the archive read this file."""

import _imp
import _warnings
import sys
from _frozen_importlib_external import SourceFileLoader, cache_from_source


class Compiling:
    """The method `source_to_code` of a loader, which records whether Python warns about the source. Code with warnings is not kept: it is
    compiled each time, so that each start warns."""

    def __init__(self, loader):
        self._loader = loader
        self.has_compiled = self.has_warned = False

    def __call__(self, data, path, *names, **options):
        self.has_compiled = True
        filters = getattr(sys.modules.get("warnings", _warnings), "filters", None)
        if type(filters) is list:
            # Python's name for the module of such a warning: no other warning has a file as its module. From CPython 3.15 on it is the
            # module's own name, which Python passes.
            name = names[0] if names else path[:-3] if path.endswith(".py") else path
            error = ("error", None, Warning, name, 0)
            filters.insert(0, error)
            try:
                return SourceFileLoader.source_to_code(self._loader, data, path, *names, **options)
            except (SyntaxError, Warning):
                pass
            finally:
                if error in filters:
                    filters.remove(error)
        self.has_warned = True
        return SourceFileLoader.source_to_code(self._loader, data, path, *names, **options)


# Hides its frame from tracebacks (see Loader of imports.py).
_imp._fix_co_filename(Compiling.__call__.__code__, cache_from_source.__code__.co_filename)

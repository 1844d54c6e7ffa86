"""The threads by which Streamlit polls files with settings: a thaw has none of the boot's."""

import sys

from .randomness import instances
from .recipes import Defaults


class Recipe(Defaults):
    """See Defaults."""

    kind = None
    watchers = ()

    def end(self, report):
        """Finds what polls."""
        self.kind = getattr(sys.modules.get("streamlit.watcher.polling_path_watcher"), "PollingPathWatcher", None)
        self.watchers = instances([self.kind]) if self.kind is not None else ()
        return bool(self.watchers)

    def renew(self):
        """Goes on polling."""
        before = self.kind._executor
        self.kind._executor = type(before)(max_workers=before._max_workers)
        for watcher in self.watchers:
            watcher._schedule()

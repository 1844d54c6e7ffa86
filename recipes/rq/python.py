"""Whether RQ's log has colours, which its module finds out when it is loaded."""

import sys

from .recipes import Defaults

PLACE = "/rq/logutils.py"


class Recipe(Defaults):
    """See Defaults."""

    colorizer = None

    def renews_look(self, frame, of):
        """See Defaults."""
        return of == 1 and frame.f_code.co_filename.endswith(PLACE) and frame.f_code.co_name == "__init__"

    def end(self, report):
        """See Defaults."""
        self.colorizer = getattr(sys.modules.get("rq.logutils"), "colorizer", None)
        return self.colorizer is not None

    def renew(self):
        """Looks at the stream of this start."""
        self.colorizer.notty = not (hasattr(sys.stdout, "isatty") and sys.stdout.isatty())

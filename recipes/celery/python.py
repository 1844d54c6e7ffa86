"""The age of a worker, which begins with its start."""

import sys

from .recipes import Defaults


class Recipe(Defaults):
    """See Defaults."""

    workers = ()

    def end(self, report):
        """Finds the worker of an image that begins in the midst of its making."""
        module = sys.modules.get("celery.worker.worker")
        kind = getattr(module, "WorkController", None)
        if kind is not None:
            import gc  # a program without Celery would find it among its modules

            made = [thing for thing in gc.get_objects() if issubclass(type(thing), kind)]
            self.workers = [worker for worker in made if "startup_time" in worker.__dict__]
        return bool(self.workers)

    def renew(self):
        """It begins now."""
        for worker in self.workers:
            before = worker.startup_time
            worker.startup_time = type(before).now(before.tzinfo) if before.tzinfo else type(before).utcnow()

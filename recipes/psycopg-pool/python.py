"""psycopg_pool's pools. They have threads, which a forked process has not, so they are closed, and opened again after a thaw."""

from .recipes import Defaults


class Recipe(Defaults):
    """See Defaults. Closing an asynchronous pool needs its event loop."""

    pools = ("psycopg_pool.pool:ConnectionPool",)
    closed = ()

    def close_idle(self, pools):
        """See Defaults."""
        self.closed = [pool for pool in pools if not pool.closed]
        for pool in self.closed:
            pool.close()

    def after_thaw(self):
        """See Defaults."""
        return [("after_thaw", self.open_again, (), {})] if self.closed else []

    def open_again(self):
        """Begins to connect in the background, as a new pool does."""
        pools, self.closed = self.closed, ()  # only the program holds them
        for pool in pools:
            pool._opened = False  # it refuses to be opened a second time
            pool.open()

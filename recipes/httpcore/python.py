"""httpcore's pools, which httpx uses: they drop a connection that is closed, and open another one."""

from .recipes import Defaults


class Recipe(Defaults):
    """See Defaults. Closing the connections of asynchronous pools needs their event loop."""

    pools = ("httpcore:ConnectionPool",)

    def close_idle(self, pools):
        """See Defaults."""
        for connection in [connection for pool in pools for connection in pool.connections]:
            if connection.is_idle():
                connection.close()

"""psycopg2's pools: an empty one connects when it is asked for a connection."""

from .recipes import Defaults


class Recipe(Defaults):
    """See Defaults."""

    pools = ("psycopg2.pool:AbstractConnectionPool",)

    def close_idle(self, pools):
        """See Defaults."""
        for pool in pools:
            while pool._pool:
                pool._pool.pop().close()

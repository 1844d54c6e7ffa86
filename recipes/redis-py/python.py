"""redis-py's pools, and clients with one connection. A connection that is closed connects again, and selects its database."""

from .recipes import Defaults


class Recipe(Defaults):
    """See Defaults. Closing the connections of asynchronous pools needs their event loop."""

    pools = ("redis.connection:ConnectionPool", "redis.client:Redis")

    def close_idle(self, pools):
        """Leaves connections that are subscribed, or have a transaction."""
        from redis.client import Pipeline, Redis

        for pool in pools:
            if not issubclass(type(pool), Redis):
                _disconnect(pool)
            # A pipeline has a connection only while it watches keys.
            elif pool.connection is not None and not issubclass(type(pool), Pipeline):
                pool.connection.disconnect()


def _disconnect(pool):
    try:
        pool.disconnect(inuse_connections=False)
    except TypeError:
        # A BlockingConnectionPool before 5.3 cannot leave out those that are in use.
        for connection in list(pool.pool.queue):
            if connection is not None:
                connection.disconnect()

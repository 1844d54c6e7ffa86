"""SQLAlchemy's pools: a record without a connection connects when it is taken from its pool."""

import sys

from .recipes import Defaults


class Recipe(Defaults):
    """See Defaults. Closing the connections of asynchronous engines needs their event loop."""

    pools = ("sqlalchemy.pool.base:_ConnectionRecord",)

    def close_idle(self, pools):
        """Leaves databases in memory, which are in the image."""
        for record in pools:
            connection = record.dbapi_connection
            if connection is not None and not record.in_use and not _is_asynchronous(connection) and not _is_in_memory(connection):
                record.close()


def _is_asynchronous(connection):
    return hasattr(connection, "driver_connection")


def _is_in_memory(connection):
    kind = getattr(sys.modules.get("sqlite3"), "Connection", ())
    return isinstance(connection, kind) and not all(row[2] for row in connection.execute("pragma database_list"))

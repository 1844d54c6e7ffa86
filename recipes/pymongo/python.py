"""PyMongo's clients, closed as a client closes itself in a forked child: its servers connect again."""

from .recipes import Defaults, Refused

# So long a thread may take to leave its connection (seconds).
PATIENCE = 5


class Recipe(Defaults):
    """See Defaults. Closing the connections of asynchronous clients needs their event loop."""

    # Before 4.9 they have no folder of their own.
    pools = (
        "pymongo.synchronous.mongo_client:MongoClient", "pymongo.mongo_client:MongoClient",
        "pymongo.synchronous.client_session:ClientSession", "pymongo.client_session:ClientSession",
    )  # fmt: skip

    def close_idle(self, pools):
        """Sessions have numbers by which servers know them, so no two processes may have one: those that clients keep are dropped, too."""
        clients = [client for client in pools if "_topology" in client.__dict__]
        if not all(session.has_ended for session in pools if "_topology" not in session.__dict__):
            raise Refused(OPEN)
        for client in clients:
            if client._topology is not None and client._topology._opened:
                _close(client._topology)


def _close(topology):
    with topology._lock:
        servers = list(topology._servers.values())
        for server in servers:
            server.close()
        topology._session_pool.reset()
    for server in servers:
        server._monitor._executor.join(PATIENCE)
        server._monitor._rtt_monitor._executor.join(PATIENCE)
    # With the number of the freezing process it warns of a fork.
    topology._pid = None


OPEN = (
    "a session of PyMongo is open (start_session, or a cursor that was not read to its end), and all thaws would share it. End it in a "
    "before_freeze hook, or start it after the freeze point"
)

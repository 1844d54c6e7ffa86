"""gRPC's channels and servers: from their making on they have threads in C, which no forked process has."""

from .recipes import Defaults, Refused


class Recipe(Defaults):
    """See Defaults."""

    pools = ("grpc._channel:Channel", "grpc._server:_Server")

    def close_idle(self, pools):
        """Refuses them."""
        raise Refused(MADE % type(pools[0]).__name__.strip("_").lower())


MADE = "a gRPC %s was made, and a thaw would be without its threads. Make it where it is first used, or in snapboot.defer"

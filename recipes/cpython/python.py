"""Connections that http.client keeps open between requests, for itself or for a pool such as urllib3's, which requests and botocore use.
A connection that is closed connects again at its next request."""

from .recipes import Defaults


class Recipe(Defaults):
    """See Defaults."""

    pools = ("http.client:HTTPConnection",)

    def close_idle(self, pools):
        """Closes those whose last answer was read."""
        for connection in pools:
            state = connection.__dict__
            response = state.get("_HTTPConnection__response")
            is_idle = state.get("_HTTPConnection__state") == "Idle" and (response is None or response.isclosed())
            if is_idle and state.get("sock") is not None and connection.auto_open:
                connection.close()

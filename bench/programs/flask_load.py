"""Requests to the Flask app of examples/ (on PYTHONPATH), made in the process through WSGI; prints one number.

`first`: milliseconds of the first request. `steady`: requests per second, for SECONDS after a warm-up.
"""

import sys
import time

from app import app

SECONDS = 1.0


def ask() -> None:
    """One request for the front page. Raises AssertionError unless it is answered."""
    environ = {
        "REQUEST_METHOD": "GET",
        "SCRIPT_NAME": "",
        "PATH_INFO": "/",
        "QUERY_STRING": "",
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": sys.stdin.buffer,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": False,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    answered = []
    body = b"".join(app.wsgi_app(environ, lambda status, headers: answered.append(status)))
    assert answered == ["200 OK"] and body, answered


def main() -> None:
    began = time.perf_counter()
    ask()
    first = time.perf_counter() - began
    if sys.argv[1] == "first":
        print(first * 1000)
        return
    for _ in range(200):
        ask()
    requests, began = 0, time.perf_counter()
    while time.perf_counter() - began < SECONDS:
        for _ in range(50):
            ask()
        requests += 50
    print(requests / (time.perf_counter() - began))


if __name__ == "__main__":
    main()

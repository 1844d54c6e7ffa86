"""Serves a model over HTTP: POST a picture as a JSON list of 64 numbers, and get the digit that it shows.

    serve.py 8000       serve on this port
    serve.py --check    answer one request without a network, print the answer, end
"""

import http.server
import json
import sys

import model

# A handwritten zero.
SAMPLE = "[0,0,5,13,9,1,0,0, 0,0,13,15,10,15,5,0, 0,3,15,2,0,11,8,0, 0,4,12,0,0,8,8,0," \
    "0,5,8,0,0,9,8,0, 0,4,11,0,1,12,7,0, 0,2,14,5,10,12,0,0, 0,0,6,13,10,0,0,0]"


def answer(body: str | bytes) -> str:
    """What a request is answered with."""
    return json.dumps({"digit": model.read_digit(json.loads(body))})


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        said = answer(self.rfile.read(int(self.headers["Content-Length"]))).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)


if __name__ == "__main__":
    if sys.argv[1] == "--check":
        print(answer(SAMPLE))
    else:
        http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()

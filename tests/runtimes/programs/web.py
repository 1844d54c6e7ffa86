"""Flask's test client, Requests against a server of this process, BSON and a MongoDB that is not there."""

import datetime
import http.server
import os
import threading

import bson
import flask
import pymongo
import requests

app = flask.Flask("web")
app.secret_key = "fixed"


@app.route("/")
def home():
    flask.session["visits"] = flask.session.get("visits", 0) + 1
    return flask.render_template_string("<b>{{ visits }}</b> {{ text }}", visits=flask.session["visits"], text="<é>")


@app.route("/json", methods=["POST"])
def echo():
    return flask.jsonify(given=flask.request.get_json(), query=flask.request.args.to_dict())


@app.route("/broken")
def broken():
    raise ValueError("broken on purpose")


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(201)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[::-1])

    def log_message(self, *arguments):
        pass


def show(response):
    headers = {name: value for name, value in response.headers.items() if name != "Set-Cookie"}
    print(response.status_code, headers, response.get_data(as_text=True))


with app.test_client() as client:
    for _ in range(2):
        show(client.get("/"))
    show(client.post("/json?a=1&b=%C3%A9", json={"list": [1, None]}))
    show(client.get("/absent"))
    app.logger.disabled = True
    show(client.get("/broken"))

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
with requests.Session() as session:
    session.trust_env = False
    for text in ("abc", "x" * 200_000):
        answer = session.post("http://127.0.0.1:%d/" % server.server_port, data=text)
        print(answer.status_code, len(answer.text), answer.text[:3])
server.shutdown()
server.server_close()

document = {"a": 1, "when": datetime.datetime(2024, 2, 29), "inner": {"list": [1.5, b"bytes", None]}}
print(bson.decode(bson.encode(document)) == document, bson.ObjectId() != bson.ObjectId())
try:
    pymongo.MongoClient("127.0.0.1", 1, serverSelectionTimeoutMS=100).admin.command("ping")
except pymongo.errors.ServerSelectionTimeoutError as error:
    print(type(error).__name__)
print(os.readlink("/proc/self/exe"))

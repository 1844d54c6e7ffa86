import flask

app = flask.Flask(__name__)


@app.get("/")
def show():
    return flask.jsonify(state="ready")

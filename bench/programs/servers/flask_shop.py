"""A Flask application: WSGI `app`."""

import os

from flask import Flask

app = Flask(__name__)


@app.route("/")
def index():
    return f"hello {os.environ.get('GREETING', 'nobody')}\n"

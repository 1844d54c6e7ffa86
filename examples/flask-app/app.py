"""A reading list on the web: a page, a search and a JSON interface.

The ordinary way, and frozen:

    python -m flask --app app run --port 8000

    snapboot freeze -o shelf.img --preload app,flask.cli -- python -m flask --app app run
    ./shelf.img --port 8000
"""

import json
import pathlib

from flask import Flask, jsonify, render_template_string, request

PAGE = """<!doctype html>
<title>Reading list</title>
<h1>Reading list</h1>
<form><input name="search" value="{{ search }}"> <button>Search</button></form>
<ul>
{% for book in books %}  <li><i>{{ book.title }}</i>, {{ book.author }} ({{ book.year }})
{% else %}  <li>Nothing found.
{% endfor %}</ul>
"""

app = Flask(__name__)
books = json.loads(pathlib.Path(__file__).with_name("books.json").read_text())


def found(search: str) -> list[dict]:
    """The books whose title or author contains `search`, oldest first."""
    wanted = search.casefold()
    hits = [book for book in books if wanted in f"{book['title']} {book['author']}".casefold()]
    return sorted(hits, key=lambda book: book["year"])


@app.get("/")
def page():
    search = request.args.get("search", "")
    return render_template_string(PAGE, books=found(search), search=search)


@app.get("/api/books")
def api():
    return jsonify(found(request.args.get("search", "")))

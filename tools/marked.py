"""Text in a document that a tool writes: it stands between two markers that name the tool."""

import re


def filled_in(document: str, text: str, *, tool: str) -> str:
    """The document with the text between the markers of `tool` (a path in the repository). Raises ValueError if it has not both."""
    begin, end = f"<!-- {tool}: begin -->", f"<!-- {tool}: end -->"
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not pattern.search(document):
        raise ValueError(f"the document should contain the lines {begin} and {end}, in this order")
    return pattern.sub(lambda _: f"{begin}\n{text}\n{end}", document)

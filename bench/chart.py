"""Draws the README's chart: a pair of bars for each start, ordinary and thawed, on one linear scale.

The titles stand above the bars, so that the drawing is narrow and can be read on a phone.
"""

import dataclasses

from svg import THEMES, drawing, rectangle, text

LEFT, TOP = 4, 44
BAR, ROW = 14, 60
SCALE = 470  # what the longest bar gets: the rest is for its figure
LEAST = 2  # a bar that could not be seen would look like a missing one
COLOURS = {"ordinary": "slow", "thawed": "fast"}


@dataclasses.dataclass(frozen=True)
class Row:
    """One start: what it is, its medians in ms, and the same as a reader wants them."""

    title: str
    ordinary: float
    thawed: float
    ordinary_text: str
    thawed_text: str


def legend(colours: dict[str, str]) -> list[str]:
    """The two colours and what they stand for, above the rows."""
    parts, x = [], LEFT
    for case, words in (("ordinary", "ordinary start"), ("thawed", "thawed from an image")):
        parts += [rectangle(x, 10, 12, 12, colours[COLOURS[case]]), text(x + 18, 21, colours["muted"], words, 14)]
        x += 140
    return parts


def pair(row: Row, y: float, per_ms: float, colours: dict[str, str]) -> list[str]:
    """A title and two bars, each with its figure behind it."""
    parts = [text(LEFT, y, colours["text"], row.title, 15, 600)]
    for place, (case, colour) in enumerate(COLOURS.items()):
        width = max(LEAST, getattr(row, case) * per_ms)
        top = y + 7 + place * (BAR + 2)
        parts.append(rectangle(LEFT, top, width, BAR, colours[colour]))
        parts.append(text(LEFT + width + 6, top + BAR - 2, colours["muted"], getattr(row, f"{case}_text"), 14))
    return parts


def draw(rows: list[Row], theme: str) -> str:
    """The SVG of these rows in the colours of a theme."""
    colours = THEMES[theme]
    per_ms = SCALE / max((max(row.ordinary, row.thawed) for row in rows), default=1)
    parts = legend(colours)
    for place, row in enumerate(rows):
        parts += pair(row, TOP + 12 + place * ROW, per_ms, colours)
    told = [f"{row.title}: {row.ordinary_text} ordinary, {row.thawed_text} thawed" for row in rows]
    return drawing(TOP + ROW * len(rows), "; ".join(told), parts)

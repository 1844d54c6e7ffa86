#!/usr/bin/env python3
"""Draws the README's picture: a program that boots at each start, and one that boots once and is thawed at each start.

    tools/diagram.py    write docs/images/thaw-light.svg and thaw-dark.svg
"""

import pathlib
import sys

from svg import THEMES, drawing, rectangle, text

IMAGES = pathlib.Path(__file__).resolve().parent.parent / "docs/images"
SHOWN = (
    "Ordinary: every start boots (interpreter, imports, configuration) before its main part. "
    "Snapboot: freeze boots once and writes an image; every start maps the image and runs the main part."
)
HEIGHT, BOX = 236, 30
BOOT, MAIN, THAW = 330, 80, 30  # widths


def box(x: float, y: float, width: float, fill: str, colour: str, words: str) -> list[str]:
    label = text(x + width / 2, y + 20, colour, words, 14, anchor="middle")
    return [rectangle(x, y, width, BOX, fill), label]


def arrow(x: float, y: float, to_x: float, to_y: float, colour: str) -> str:
    """Down from (x, y), then to the left."""
    line = f"M{x:g} {y:g} V{to_y:g} H{to_x:g} m8 -5 l-8 5 l8 5"
    return f'<path d="{line}" fill="none" stroke="{colour}" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"/>'


def draw(theme: str) -> str:
    colours = THEMES[theme]
    slow, fast, on_fast, muted = colours["slow"], colours["fast"], colours["on fast"], colours["muted"]
    on_slow = colours["text"]

    def label(y: float, words: str) -> str:
        return text(4, y, muted, words, 14)

    freeze, thaw = 108, 196
    parts = [
        label(18, "ordinary, every start"),
        *box(4, 26, BOOT, slow, on_slow, "boot: interpreter, imports, configuration"),
        *box(4 + BOOT + 4, 26, MAIN, fast, on_fast, "main"),
        label(freeze - 8, "snapboot freeze, once"),
        *box(4, freeze, BOOT, slow, on_slow, "boot"),
        *box(4 + BOOT + 4, freeze, MAIN, slow, on_slow, "image"),
        text(4 + BOOT + MAIN + 16, freeze + 20, muted, "+ its inputs", 14),
        label(thaw - 8, "thaw, every start: map the image, go on"),
        arrow(4 + BOOT + 4 + MAIN / 2, freeze + BOX + 6, 4 + THAW + 4 + MAIN + 8, thaw + BOX / 2, muted),
        rectangle(4, thaw, THAW, BOX, slow),
        *box(4 + THAW + 4, thaw, MAIN, fast, on_fast, "main"),
    ]
    return drawing(HEIGHT, SHOWN, parts)


def pictures() -> dict[pathlib.Path, str]:
    """What each file should hold, by path."""
    return {IMAGES / f"thaw-{theme}.svg": draw(theme) for theme in THEMES}


def main() -> int:
    for path, drawn in pictures().items():
        path.write_text(drawn)
    return 0


if __name__ == "__main__":
    sys.exit(main())

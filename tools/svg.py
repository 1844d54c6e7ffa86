"""What the drawings of the documents share: two themes, and the few elements of SVG that they need.

There is a file for light and one for dark pages, as an image cannot know the page that it is on.
"""

import html

WIDTH = 560  # narrow, so that a phone can show it at a readable size
FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
THEMES = {
    "light": {"text": "#1f2328", "muted": "#59636e", "slow": "#afb8c1", "fast": "#0969da", "on fast": "#ffffff"},
    "dark": {"text": "#e6edf3", "muted": "#9198a1", "slow": "#57606a", "fast": "#58a6ff", "on fast": "#0d1117"},
}


def text(x: float, y: float, colour: str, words: str, size: int = 15, weight: int = 400, anchor: str = "start") -> str:
    place = f'x="{x:g}" y="{y:g}" text-anchor="{anchor}"'
    return f'<text {place} font-size="{size}" font-weight="{weight}" fill="{colour}">{html.escape(words, quote=False)}</text>'


def rectangle(x: float, y: float, width: float, height: float, colour: str) -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{width:.4g}" height="{height:g}" rx="2" fill="{colour}"/>'


def drawing(height: int, title: str, parts: list[str]) -> str:
    """An SVG file of these parts; `title` is what it shows, in words."""
    size = f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="{FONT}">'
    return "\n".join([head, f"<title>{html.escape(title, quote=False)}</title>", *parts, "</svg>", ""])

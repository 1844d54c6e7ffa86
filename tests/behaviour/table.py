"""The table of cases: reads cases/*.toml, checks it, and fills in what a case leaves open.

README.md describes the keys. A key that is not described there, or a case without a name, is an error.
"""

import dataclasses
import pathlib
import re

import tomllib

FOLDER = pathlib.Path(__file__).parent / "cases"
LANGUAGES = ("python", "ruby")
STREAMS = ("pipe", "file", "pty")
MAINS = (
    *("code", "script", "module", "stdin", "dash", "none"),
    *("frozen code", "frozen script", "frozen module", "frozen command"),
)


@dataclasses.dataclass(frozen=True)
class Difference:
    """What differs between an ordinary run and a thawed one, and why that cannot be helped. docs/limits/visible.md says it too."""

    why: str
    versions: str = ""  # of the interpreter, as "< 3.3"; all when empty
    ordinary: str = ""  # what only the ordinary run shows: this pattern, once the rest is equal
    thawed: str = ""


@dataclasses.dataclass(frozen=True)
class Case:
    """One case, in one language, started in one way. `first`: whether that is the first of the ways that the case names."""

    name: str
    shows: str
    language: str
    main: str
    first: bool = True
    program: str = ""
    options: tuple = ()
    frozen_options: tuple = ()
    preload: tuple = ()
    args: tuple = ()
    stdin: str = ""
    env: dict = dataclasses.field(default_factory=dict)
    unset: tuple = ()
    files: dict = dataclasses.field(default_factory=dict)
    links: dict = dataclasses.field(default_factory=dict)
    cwd: str = "."
    shell: str = ""
    streams: tuple = STREAMS
    signals: tuple = ()
    status: object = 0
    prints: str = ""
    since: tuple = ()
    workload: str = ""
    falls_back: object = False  # or the kinds of streams with which it does, or the versions: "< 3.4", "free-threaded"
    differs: Difference = None
    refused: str = ""  # what `snapboot freeze` must say instead: a pattern

    @property
    def kinds(self):
        """The kinds of standard streams to run it with: each kind in the first way, a pipe in the others."""
        return self.streams if self.first else self.streams[:1]

    def expects_fallback(self, kind, version, is_free_threaded):
        """Whether the image must start the ordinary way with these standard streams, on this version (a tuple of numbers)."""
        if self.falls_back == "free-threaded":
            return is_free_threaded
        if isinstance(self.falls_back, str):
            return is_among(version, self.falls_back)
        return self.falls_back if isinstance(self.falls_back, bool) else kind in self.falls_back

    @property
    def frozen(self):
        """Whether the image holds this very program, not just the interpreter."""
        return self.main.startswith("frozen")

    @property
    def program_file(self):
        """What the program is saved as."""
        if self.main == "frozen command":
            return "tool"
        return "program.py" if self.language == "python" else "program.rb"


def is_among(version, versions):
    """Whether a version, a tuple of numbers, is one of those that a condition such as `< 3.4` or `>= 3.2` means."""
    comparison, _, limit = versions.partition(" ")
    limit = tuple(int(number) for number in limit.split("."))
    return {"<": version < limit, ">=": version >= limit}[comparison]


KEYS = {field.name for field in dataclasses.fields(Case)} - {"language", "first", "program"}


def load():
    """All cases of all files, in order. Raises ValueError for a case that is not written as README.md says."""
    cases = []
    for path in sorted(FOLDER.glob("*.toml")):
        for row in tomllib.loads(path.read_text())["case"]:
            cases += _cases_of(row, f"{path.name}, case {row.get('name', 'without a name')!r}")
    names = [(case.name, case.language, case.main) for case in cases]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"more than one case is named {sorted(twice)[0]}; give each its own name")
    return cases


def _cases_of(row, where):
    shared = {key: value for key, value in row.items() if key not in LANGUAGES}
    for language in LANGUAGES:
        if language not in row:
            continue
        own = row[language]
        values = {**shared, **({"program": own} if isinstance(own, str) else own)}
        unknown = set(values) - KEYS - {"program"}
        if unknown or not {"name", "shows"} <= set(values):
            raise ValueError(f"{where}: unknown keys {sorted(unknown)}, or no name or shows; README.md lists the keys")
        mains = values.pop("main", "code")
        mains = [mains] if isinstance(mains, str) else mains
        for main in mains:
            if main not in MAINS or (language == "ruby" and main.endswith("module")):
                raise ValueError(f"{where}: main {main!r} was expected to be one of {', '.join(MAINS)}")
            yield Case(language=language, main=main, first=main == mains[0], **_filled(values, main))


def _filled(values, main):
    filled = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
    if "differs" in filled:
        filled["differs"] = Difference(**filled["differs"])
    if main in ("stdin", "dash"):
        # On a terminal the interpreter would start an interactive session.
        filled["streams"] = tuple(kind for kind in filled.get("streams", STREAMS) if kind != "pty")
    return filled


REPEATED = re.compile(rb"%\{(.)\*(\d+)\}")
BYTE = re.compile(rb"%\{byte:([0-9a-f]{2})\}")


def expand(text, **places):
    """Turns the placeholders of a text into bytes: %{name} for each place, %{byte:ff} a byte, %{x*100} a run of x."""
    data = text.encode()
    for name, value in places.items():
        data = data.replace(b"%%{%s}" % name.encode(), str(value).encode())
    data = REPEATED.sub(lambda match: match[1] * int(match[2]), data)
    return BYTE.sub(lambda match: bytes.fromhex(match[1].decode()), data)

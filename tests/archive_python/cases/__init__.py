"""Programs that show what imports mean. A file for each subject; test_cases.py runs them all."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Case:
    """A program: its files, and what is started, one after the other.

    files: paths and texts. prepare: a program that is run once, the ordinary way, when they are written. words: the interpreter's
    arguments, a list of lists where several starts belong together. env: variables. stdin: what it reads. since: the first version that
    can run it. until: the last one. cwd: where it starts, in its folder. between: a shell command before each start. shows: what the
    ordinary start has to print, so that the case is about something.
    """

    files: dict
    words: list = dataclasses.field(default_factory=lambda: ["main.py"])
    prepare: str = ""
    env: dict = dataclasses.field(default_factory=dict)
    stdin: str = ""
    since: tuple = (3, 8)
    until: tuple = (3, 99)
    cwd: str = ""
    between: str = ""
    shows: str = ""

    def starts(self):
        """What is started."""
        return self.words if isinstance(self.words[0], list) else [self.words]


# Four modules, so that the archive is open and serves the fifth.
OPEN = {f"filler{number}.py": f"NUMBER = {number}\n" for number in range(5)}
OPENED = "import filler0, filler1, filler2, filler3, filler4\n"


def case(main, files=None, **options):
    """A Case whose main program imports enough first for the archive to serve what follows."""
    return Case({**OPEN, "main.py": OPENED + main, **(files or {})}, **options)

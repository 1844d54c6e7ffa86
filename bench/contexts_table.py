"""The tables of contexts.py: how many starts are served, by program and by context, why others are not, and what was wrong."""

import collections
import re

# A row of `snapboot inspect --why` about a variable.
VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*): (?:another value|unset -> set|set -> unset)")
# What of a reason differs from one start to another.
PASSING = [
    (re.compile(r", modified .* -> .*"), ""),
    (re.compile(r" \(only digests are kept\)"), ""),
    (re.compile(r"\d+ -> \d+ bytes"), "another size"),
    (re.compile(r"locale of text .*"), "locale of text"),
    (re.compile(r"^stale: "), ""),
    (re.compile(r"^((?:size of the terminal at )?standard (?:input|output|error))\b.*"), r"\1"),
    (re.compile(r"^(umask|current directory): .*"), r"\1"),
]
SERVED = ("same", "unstable", "wrong")


# What `snapboot freeze` says of an image that depends on all variables, and those that count in any case.
WHOLE = "every variable of the environment"
ALWAYS = re.compile("PYTHON|RUBY|BUNDLE_")


def key(reason: str, depends_on_all: bool = False) -> str:
    """What a reason is about: reasons that one change would remedy have the same key."""
    if variable := VARIABLE.match(reason):
        return WHOLE if depends_on_all and not ALWAYS.match(reason) else f"variable {variable.group(1)}"
    for pattern, instead in PASSING:
        reason = pattern.sub(instead, reason)
    return reason


def keys(start: dict) -> list[str]:
    return sorted({key(reason, start["depends on all"]) for reason in start.get("reasons", [])})


def starts_of(program: dict) -> list[dict]:
    """The starts of a program, each with what `keys` and the tables have to know of it."""
    own = {"program": program["name"], "language": program["language"]}
    own["depends on all"] = any(WHOLE in line for line in program.get("depends", []))
    return [{**start, **own} for start in program["starts"]]


def counted(starts: list[dict]) -> list[dict]:
    """Those that count: not the ones in the context of the freeze."""
    return [start for start in starts if start["context"] != "base"]


def served(starts: list[dict]) -> int:
    return sum(start["outcome"] in SERVED for start in starts)


def of_outcome(starts: list[dict], outcome: str) -> list[dict]:
    return [start for start in starts if start["outcome"] == outcome]


def line(program: dict) -> str:
    """A program's row."""
    all_starts = starts_of(program)
    starts = counted(all_starts)
    if not starts:
        last = (program.get("missing") or program.get("said", "")).strip().splitlines()[-1:]
        return f"{program['name']:18} {program['language']:7} no image: {' '.join(last)}"
    wrong, unstable = (len(of_outcome(all_starts, outcome)) for outcome in ("wrong", "unstable"))
    reasons: dict[str, list[str]] = {}
    for start in of_outcome(starts, "not served"):
        reasons.setdefault(start["context"], keys(start))
    told = "; ".join(f"{context}: {', '.join(of_it)}" for context, of_it in reasons.items())
    row = f"{program['name']:18} {program['language']:7} {served(starts):3}/{len(starts):<3} {wrong:5} {unstable:8}  {told}"
    base = of_outcome([start for start in all_starts if start["context"] == "base"], "not served")
    return row.rstrip() + (f"  (NOT EVEN AS FROZEN: {', '.join(keys(base[0]))})" if base else "")


class Table:
    """Results of programs. `contexts`: their names, with what they are about."""

    def __init__(self, contexts: dict[str, str], programs: list[dict]):
        self.contexts, self.programs = contexts, programs
        self.starts = [start for program in programs for start in starts_of(program)]
        self.counted = counted(self.starts)

    def is_wrong(self) -> bool:
        return bool(of_outcome(self.starts, "wrong"))

    def reasons(self, language: str) -> list[dict]:
        """A row for each reason, that first which keeps most starts from being served all by itself."""
        rows: dict[str, dict] = {}
        for start in of_outcome(self.counted, "not served"):
            if start["language"] != language:
                continue
            found = keys(start)
            for reason in found:
                row = rows.setdefault(reason, {"alone": 0, "starts": 0, "programs": set(), "contexts": collections.Counter()})
                row["alone"] += len(found) == 1
                row["starts"] += 1
                row["programs"].add(start["program"])
                row["contexts"][start["context"]] += 1
        ordered = sorted(rows, key=lambda reason: (-rows[reason]["alone"], -rows[reason]["starts"], reason))
        return [{"reason": reason, **rows[reason], "programs": sorted(rows[reason]["programs"])} for reason in ordered]

    def sets(self, language: str) -> list[tuple[int, str]]:
        """Reasons that keep starts from being served together, and how many starts: all of them would have to go."""
        found = [start for start in of_outcome(self.counted, "not served") if start["language"] == language]
        sets = collections.Counter(" + ".join(keys(start)) for start in found)
        return [(count, reasons) for reasons, count in sorted(sets.items(), key=lambda it: (-it[1], it[0])) if " + " in reasons]

    def languages(self) -> list[str]:
        return list(dict.fromkeys(start["language"] for start in self.counted))

    def text(self) -> str:
        """All tables."""
        parts = [self.by_program(), self.by_context(), *(self.by_reason(language) for language in self.languages())]
        parts += [self.list_starts(outcome) for outcome in ("wrong", "unstable") if of_outcome(self.starts, outcome)]
        return "\n\n".join([*parts, self.sums()]) + "\n"

    def by_program(self) -> str:
        heading = f"{'program':18} {'':7} {'served':7} {'wrong':>5} {'unstable':>8}  not served"
        return "\n".join([heading, *map(line, self.programs)])

    def by_context(self) -> str:
        rows = [f"{'context':16} " + " ".join(f"{language:>8}" for language in self.languages())]
        for name, about in self.contexts.items():
            figures = []
            for language in self.languages():
                starts = [it for it in self.starts if (it["context"], it["language"]) == (name, language)]
                figures.append(f"{f'{served(starts)}/{len(starts)}':>8}")
            rows.append(f"{name:16} {' '.join(figures)}  {about}")
        return "\n".join(rows)

    def by_reason(self, language: str) -> str:
        rows = [f"{language}: why starts are not served", f"{'alone':>5} {'starts':>6} {'programs':>8}  reason (contexts)"]
        for row in self.reasons(language):
            programs = row["programs"] if len(row["programs"]) <= 4 else [*row["programs"][:3], "..."]
            where = f"{', '.join(row['contexts'])}; {', '.join(programs)}"
            rows.append(f"{row['alone']:5} {row['starts']:6} {len(row['programs']):8}  {row['reason']} ({where})")
        if sets := self.sets(language):
            rows += [f"{language}: starts with several reasons at once", *(f"{count:5}  {reasons}" for count, reasons in sets)]
        return "\n".join(rows)

    def list_starts(self, outcome: str) -> str:
        titles = {"wrong": "WRONG: another output than the ordinary start's", "unstable": "unstable: ordinary starts differ, too"}
        rows = [f"{it['program']}, {it['context']}, {it['start']}: {it['difference']}" for it in of_outcome(self.starts, outcome)]
        return "\n".join([titles[outcome], *rows])

    def sums(self) -> str:
        rows = []
        for language in [*self.languages(), "all"]:
            starts = [it for it in self.counted if language in (it["language"], "all")]
            share = 100 * served(starts) / max(1, len(starts))
            wrong = len(of_outcome(starts, "wrong"))
            rows.append(f"{language}: {served(starts)} of {len(starts)} starts served ({share:.1f} %), {wrong} wrong")
        return "\n".join(rows)

    def summary(self) -> dict:
        """The same as data."""
        return {
            "served": served(self.counted),
            "total": len(self.counted),
            "wrong": len(of_outcome(self.counted, "wrong")),
            "reasons": {
                language: [{**row, "contexts": dict(row["contexts"])} for row in self.reasons(language)]
                for language in self.languages()
            },
            "programs": self.programs,
        }


def changes(before: list[dict], after: list[dict]) -> str:
    """What is different between the results of two builds: starts that are served now, that are not any more, and that are wrong now."""
    def outcomes(programs: list[dict]) -> dict[tuple, dict]:
        return {(it["name"], start["context"], start["start"]): start for it in programs for start in starts_of(it)}

    old, new = outcomes(before), outcomes(after)
    rows = [f"changes in the {len(old.keys() & new.keys())} starts that both tables have"]
    gained: dict[str, int] = collections.Counter()
    for start in sorted(old.keys() & new.keys()):
        was, now = old[start]["outcome"], new[start]["outcome"]
        if was == "not served" and now in SERVED:
            gained[", ".join(keys(old[start]))] += 1
        if now != was and (now in ("wrong", "not served")):
            told = new[start].get("difference") or ", ".join(keys(new[start]))
            rows.append(f"{', '.join(start)}: {was} -> {now}: {told}")
    rows += [f"{count:5} served now that were not: {reasons}" for reasons, count in gained.most_common()]
    return "\n".join(rows) + "\n"

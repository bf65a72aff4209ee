"""What happened on many instances: lines of counts, added up at the end where nothing heavy is imported."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Tally:
    """What happened, by kind of instance."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def add(self, kind: str, what: str) -> None:
        self.counts[kind, what] += 1

    def to_line(self) -> str:
        """The counts on one line; `from_lines` adds such lines up."""
        return " ".join(f"{kind}.{what}={count}" for (kind, what), count in sorted(self.counts.items()))

    @classmethod
    def from_lines(cls, lines: list[str]) -> Tally:
        tally = cls()
        for line in lines:
            for entry in line.split():
                key, count = entry.split("=")
                tally.counts[tuple(key.split("."))] += int(count)  # type: ignore[index]
        return tally

    def total(self, what: str) -> int:
        return sum(count for (_, name), count in self.counts.items() if name == what)

    def lines(self) -> list[str]:
        """A table: per kind, how often a point and how often the optimum was found."""
        titles = ("instances", "infeasible", "active row", "easy", "counted", "point", "optimum")
        rows = [f"{'kind':12s} " + " ".join(f"{title:>10s}" for title in titles)]
        for kind in (*sorted({kind for kind, _ in self.counts}), "all"):

            def n(what: str, kind: str = kind) -> int:
                return self.total(what) if kind == "all" else self.counts[kind, what]

            counted = n("counted")
            share = f"{100 * n('optimum') / counted:.1f} %" if counted else "-"
            found = f"{100 * n('found') / counted:.1f} %" if counted else "-"
            cells = (n("instances"), n("infeasible"), n("active"), n("easy"), counted, found, share)
            rows.append(f"{kind:12s} " + " ".join(f"{cell:>10}" for cell in cells))
        return rows

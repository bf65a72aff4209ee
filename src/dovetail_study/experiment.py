"""What an experiment is: runs to make, and what to say, show and judge of the rows they left."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from textwrap import fill
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable

from dovetail_study.figures import Drawing

SEEDS = (42, 123, 456, 789, 1024)
"""The paper's."""
TIME_LIMIT = 300.0
"""The paper's, in seconds, for every run."""
QUICK_SEEDS, QUICK_LIMIT = (42,), 1.0
"""To see that everything runs, not to measure."""
FEW = 3
"""Seeds for what takes minutes a run: enough for a spread, three fifths of the time."""
THREADS = 1
"""Of every solve: so that runs at the same time do not wait for each other."""
INIT = "he"
"""How the networks of a cell that does not say it are initialised."""

Record = dict[str, Any]
"""One line of the results file: the run's cell, seed and method, and what came out."""


@dataclass(frozen=True)
class BenchSettings:
    """What the user asked for."""

    quick: bool = False
    data: Path | None = None
    seeds: tuple[int, ...] = SEEDS
    time_limit: float = TIME_LIMIT
    baseline_limit: float = TIME_LIMIT
    """Seconds in which SCIP solves what big-M has written."""
    writing_limit: float = TIME_LIMIT
    """Seconds more, for writing it."""
    memory_limit: float | None = None
    """GB of memory that a run of big-M may take; None: what the method itself takes for the limit."""
    methods: tuple[str, ...] | None = None
    """Only these; None for all that the experiment compares."""
    networks: tuple[str, ...] | None = None
    """Only cells with these networks; None for all."""
    device: str | None = None


@dataclass(frozen=True)
class Run:
    """What to solve and how."""

    experiment: str
    cell: tuple[tuple[str, Any], ...]
    """Which instance: names and values, such as ("network", "2x16")."""
    method: str
    seed: int
    given: str | None = field(default=None, compare=False)
    """The key of a run that must have found a point before this one is made."""
    times: float = field(default=1.0, compare=False)
    """How many times its seconds it has, where the paper gave an instance more time; big-M's are SCIP's."""
    whole: float | None = field(default=None, compare=False)
    """Seconds for all that big-M does, whatever the limits: SCIP has what writing leaves of them."""

    @property
    def key(self) -> str:
        """What tells it from all other runs."""
        cell = " ".join(f"{name}={value}" for name, value in self.cell)
        return f"{self.experiment} {cell} {self.method} seed={self.seed}"

    def __getitem__(self, name: str) -> Any:
        return dict(self.cell)[name]


def runs(
    experiment: str,
    cells: Iterable[Mapping[str, Any]],
    methods: Iterable[str],
    settings: BenchSettings,
    *,
    seeds: int | None = None,
    times: float = 1.0,
) -> list[Run]:
    """Every cell with every method and seed, or the first so many seeds."""
    chosen = [name for name in methods if settings.methods is None or name in settings.methods]
    wanted = [cell for cell in cells if settings.networks is None or cell.get("network") in settings.networks]
    return [
        Run(experiment, tuple(cell.items()), method, seed, times=times)
        for seed in settings.seeds[:seeds]
        for cell in wanted
        for method in chosen
    ]


def tried_first(
    experiment: str,
    cells: Sequence[Mapping[str, Any]],
    method: str,
    settings: BenchSettings,
    *,
    times: float = 1.0,
) -> list[Run]:
    """For big-M: the first seed, and a few more in those cells where it finds a point with the first.

    Where it finds none it uses all its time: a second seed would say the same for as many minutes.
    """
    first = {run.cell: run.key for run in runs(experiment, cells, (method,), settings, seeds=1)}
    planned = runs(experiment, cells, (method,), settings, seeds=FEW, times=times)
    return [run if run.seed == settings.seeds[0] else replace(run, given=first[run.cell]) for run in planned]


NOTHING = "\u2013"
"""What cells without a number hold."""


@dataclass
class ResultTable:
    """What was measured, and in a sentence or two how to read it."""

    name: str
    title: str
    header: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    reading: str = ""
    records: Sequence[Record] = ()
    """The lines of the results file its numbers come from."""

    def show(self, console: Console) -> None:
        """Print it; where the terminal is too narrow for its columns, row by row with their names."""
        if self._width > console.width:
            console.print(f"\n{self.title}")
            for record in self._records():
                console.print(fill(record, console.width, initial_indent="- ", subsequent_indent="  "))
        else:
            shown = RichTable(title=self.title, title_justify="left")
            for i, text in enumerate(self.header):
                shown.add_column(text, justify="left" if i == 0 else "right")
            for row in self.rows:
                shown.add_row(*row)
            console.print(shown)
        if self.reading:
            console.print(f"{self.reading}\n")

    @property
    def _width(self) -> int:
        """Columns of a terminal that show all of it: cells with a space at both sides, lines between."""
        cells = zip(self.header, *self.rows, strict=True)
        return 1 + sum(3 + max(map(cell_len, column)) for column in cells)

    def _records(self) -> Iterator[str]:
        """Each row in words; what is empty is left out."""
        for row in self.rows:
            pairs = zip(self.header, row, strict=True)
            yield "; ".join(f"{name} {cell}" for name, cell in pairs if cell not in ("", NOTHING))

    def markdown(self, level: int = 2, caption: str = "") -> str:
        """The table as Markdown, under a heading of that level."""
        lines = [
            f"{'#' * level} {self.title}",
            "",
            markdown_row(self.header),
            markdown_row(["---", *["---:"] * (len(self.header) - 1)]),
        ]
        lines += [markdown_row(row) for row in self.rows]
        for paragraph in (self.reading, caption):
            if paragraph:
                lines += ["", paragraph]
        return "\n".join([*lines, ""])

    def write(self, folder: Path) -> None:
        """Write it to a file of its own."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self.name}.md").write_text(self.markdown(), encoding="utf-8")


def markdown_row(cells: Sequence[str]) -> str:
    """One row of a Markdown table."""
    return "| " + " | ".join(cells) + " |"


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table of words, which may have the sign that stands between cells."""
    told = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return [*map(markdown_row, (header, ["---"] * len(header), *told))]


class Word(StrEnum):
    """What can be said of a claim."""

    HOLDS = "holds"
    IN_PART = "holds in part"
    NOT = "does not hold"
    UNTESTABLE = "not testable here"


@dataclass(frozen=True)
class Verdict:
    """One claim, judged."""

    claim: str
    paper: str
    ours: str
    word: Word
    rule: str = ""
    """What had to be seen for it to hold."""
    rows: Sequence[Record] = field(default=(), compare=False, repr=False)
    """The lines of the results file it rests on."""
    counted: bool = True
    """Whether it is one of the paper's claims that could have failed: the others are shown apart."""
    reading: str = ""
    """How the paper is read, where the claim is judged in several readings."""

    @property
    def named(self) -> str:
        """The claim with its reading."""
        return f"{self.claim} ({self.reading})" if self.reading else self.claim

    @property
    def outcome(self) -> str:
        """What was seen, without what it rests on: the first clause, with its parentheses, says it."""
        depth = 0
        for place, letter in enumerate(self.ours):
            depth += (letter == "(") - (letter == ")")
            if depth == 0 and self.ours.startswith("; ", place):
                return self.ours[:place]
        return self.ours

    def __str__(self) -> str:
        return f"{self.named}: {self.word.value} (paper {self.paper}; here {self.ours})"


def judged(
    claim: str,
    paper: str,
    ours: str,
    *,
    holds: bool | None,
    in_part: bool = False,
    open_end: bool = False,
    rule: str = "",
    rows: Sequence[Record] = (),
) -> Verdict:
    """A verdict; `holds=None` where the rows needed are not there, or say nothing of the claim.

    `open_end` says that what was seen does not settle the claim, such as a baseline that was stopped
    at its limit: a claim that is not reached is then not refuted.
    """
    if holds is None:
        return Verdict(claim, paper, ours if rows else "no rows for it", Word.UNTESTABLE, rule, rows)
    if open_end and not holds:
        return Verdict(claim, paper, ours, Word.UNTESTABLE, rule, rows)
    word = Word.HOLDS if holds else Word.IN_PART if in_part else Word.NOT
    return Verdict(claim, paper, ours, word, rule, rows)


Rows = Sequence[Record]


@dataclass(frozen=True)
class Experiment:
    """One of the paper's experiments, or one of ours about its claims."""

    name: str
    title: str
    methods: tuple[str, ...]
    """Every method it compares."""
    runs: Callable[[BenchSettings], list[Run]]
    execute: Callable[[Run, BenchSettings], Record]
    tables: Callable[[Rows], list[ResultTable]]
    verdicts: Callable[[Rows], list[Verdict]]
    draw: Callable[[Rows], Drawing | None]
    """The figure, or None where there is nothing to see."""

"""An experiment: runs to make, and the texts, tables and verdicts from their rows."""

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
"""For a test that everything runs, not for measurements."""
FEW = 3
"""Seeds for experiments with minutes per run: enough for a spread, three fifths of the time."""
THREADS = 1
"""The number of threads of every solve: runs at the same time must not wait for each other."""
INIT = "he"
"""The initialisation of a cell's networks, if the cell names none."""

Record = dict[str, Any]
"""One line of the results file: the run's cell, seed and method, and its results."""


@dataclass(frozen=True)
class BenchSettings:
    """The user's settings."""

    quick: bool = False
    data: Path | None = None
    seeds: tuple[int, ...] = SEEDS
    time_limit: float = TIME_LIMIT
    baseline_limit: float = TIME_LIMIT
    """Seconds for SCIP to solve big-M's model."""
    writing_limit: float = TIME_LIMIT
    """Additional seconds, for writing it."""
    memory_limit: float | None = None
    """GB of memory for a run of big-M; None: the method's own limit."""
    methods: tuple[str, ...] | None = None
    """Only these methods; None for all that the experiment compares."""
    networks: tuple[str, ...] | None = None
    """Only cells with these networks; None for all."""
    device: str | None = None


@dataclass(frozen=True)
class Run:
    """A problem and a method."""

    experiment: str
    cell: tuple[tuple[str, Any], ...]
    """The instance as names and values, for example ("network", "2x16")."""
    method: str
    seed: int
    given: str | None = field(default=None, compare=False)
    """The key of a run that must have found a point before this one is made."""
    times: float = field(default=1.0, compare=False)
    """Factor on its time limit, if the paper gave an instance more time; for big-M SCIP's limit."""
    whole: float | None = field(default=None, compare=False)
    """Seconds for all of big-M, whatever the other limits: SCIP gets the time that writing leaves."""

    @property
    def key(self) -> str:
        """The key that identifies a run."""
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
    """Every cell with every method and seed, or the first few seeds."""
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
    """Runs of big-M: with the first seed, and with a few more seeds in cells in which the first run finds a
    point.

    A run without a point uses all of its time, so that a second seed would take as long without new
    information.
    """
    first = {run.cell: run.key for run in runs(experiment, cells, (method,), settings, seeds=1)}
    planned = runs(experiment, cells, (method,), settings, seeds=FEW, times=times)
    return [run if run.seed == settings.seeds[0] else replace(run, given=first[run.cell]) for run in planned]


NOTHING = "\u2013"
"""The value of cells without a number."""


@dataclass
class ResultTable:
    """The subject of the table, and how to read it, in a sentence or two."""

    name: str
    title: str
    header: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    reading: str = ""
    records: Sequence[Record] = ()
    """The lines of the results file its numbers come from."""

    def show(self, console: Console) -> None:
        """Print the table; if the terminal is too narrow for its columns, row by row with their names."""
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
        """Each row in words; empty cells are left out."""
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
        """Write the table to its own file."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self.name}.md").write_text(self.markdown(), encoding="utf-8")


def markdown_row(cells: Sequence[str]) -> str:
    """One row of a Markdown table."""
    return "| " + " | ".join(cells) + " |"


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table; cells may contain the separator "|"."""
    told = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return [*map(markdown_row, (header, ["---"] * len(header), *told))]


class Word(StrEnum):
    """The possible verdicts on a claim."""

    HOLDS = "holds"
    IN_PART = "holds in part"
    NOT = "does not hold"
    UNTESTABLE = "not testable here"


@dataclass(frozen=True)
class Verdict:
    """A claim with its verdict."""

    claim: str
    paper: str
    ours: str
    word: Word
    rule: str = ""
    """The condition under which the claim holds."""
    rows: Sequence[Record] = field(default=(), compare=False, repr=False)
    """The lines of the results file on which the verdict is based."""
    counted: bool = True
    """Whether the claim is the paper's own and could have failed; other claims are shown separately."""
    reading: str = ""
    """The reading of the paper, if the claim is judged in several readings."""

    @property
    def named(self) -> str:
        """The claim with its reading."""
        return f"{self.claim} ({self.reading})" if self.reading else self.claim

    @property
    def outcome(self) -> str:
        """The observation without its sources: its first clause, with its parentheses."""
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
    """A verdict; `holds=None` if the rows are missing or say nothing about the claim.

    `open_end`: the observation does not settle the claim, for example because a baseline was stopped at its
    limit; a claim that is not reached is then not refuted.
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
    """All compared methods."""
    runs: Callable[[BenchSettings], list[Run]]
    execute: Callable[[Run, BenchSettings], Record]
    tables: Callable[[Rows], list[ResultTable]]
    verdicts: Callable[[Rows], list[Verdict]]
    draw: Callable[[Rows], Drawing | None]
    """The figure, or None if there are no data for it."""

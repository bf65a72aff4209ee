"""What an experiment is: runs to make, and what to say, show and judge of the rows they left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dovetail_study.figures import Drawing
from dovetail_study.run import BenchSettings, Record, Run
from dovetail_study.table import ResultTable
from dovetail_study.verdict import Verdict

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
    reading: Callable[[Rows], str] = lambda rows: ""
    """A short honest reading, with its numbers taken from the rows."""

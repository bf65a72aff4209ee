"""What an experiment is: runs to make, and what to say, show and judge of the rows they left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from dovetail_study.figures import Drawing
from dovetail_study.run import BenchSettings, Record, Run
from dovetail_study.table import ResultTable


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
    reading: Callable[[Rows], str] = lambda rows: ""
    """A short honest reading, with its numbers taken from the rows."""

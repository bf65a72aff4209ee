"""A claim of the paper, its number, ours, and whether it holds: computed from the results file."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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

    def __str__(self) -> str:
        return f"{self.claim}: {self.word.value} (paper {self.paper}; here {self.ours})"


def judged(
    claim: str,
    paper: str,
    ours: str,
    *,
    holds: bool | None,
    in_part: bool = False,
    open_end: bool = False,
    rule: str = "",
) -> Verdict:
    """A verdict; `holds=None` where the rows needed are not there.

    `open_end` says that ours is a lower bound, because a baseline was stopped at its limit: a claim it
    does not reach is then not refuted.
    """
    if holds is None:
        return Verdict(claim, paper, "no rows for it", Word.UNTESTABLE, rule)
    if open_end and not holds:
        return Verdict(claim, paper, ours, Word.UNTESTABLE, rule)
    return Verdict(claim, paper, ours, Word.HOLDS if holds else Word.IN_PART if in_part else Word.NOT, rule)


def share_held(claim: str, paper: str, ours: str, held: list[bool], rule: str = "") -> Verdict:
    """A verdict over many comparisons: all of them, some, or none."""
    if not held:
        return judged(claim, paper, ours, holds=None, rule=rule)
    ours = f"{ours}; {sum(held)} of {len(held)} comparisons as claimed"
    return judged(claim, paper, ours, holds=all(held), in_part=any(held), rule=rule)

"""How a big-M run ended: only where SCIP searched, or memory really ran out, was big-M put to the test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum

from dovetail_study.run import Record
from dovetail_study.statistics import known, text


class End(StrEnum):
    """The field `end` of a row; "other" is looked at more closely."""

    PROVED = "proved"
    CLAIMED = "claimed"
    """SCIP says optimal; the verified point does not meet its bound, so nothing is proved."""
    TIME = "time"
    WRITING = "writing"
    MEMORY = "memory"
    INFEASIBLE = "infeasible"
    REFUSED = "refused"
    OTHER = "other"
    UNKNOWN = "unknown"
    """The row does not say: lines of old files have no such field."""


WORDS = {
    End.PROVED: "proved",
    End.CLAIMED: "SCIP says optimal, not confirmed",
    End.TIME: "searched to the limit",
    End.WRITING: "never finished writing",
    End.MEMORY: "out of memory",
    End.INFEASIBLE: "infeasible beside a verified point",
    End.REFUSED: "refused",
    End.OTHER: "other",
    End.UNKNOWN: "not recorded",
}
"""As tables and verdicts say it."""
DONE = ("optimal", "gaplimit")
"""SCIP's last words when it has come to its end."""

NO_MEMORY = "insufficient memory"
"""SCIP's words where it asked for memory and got none."""
ALL_OF_IT = 0.99
"""SCIP looks at the clock now and then: this part of its limit is all of it."""


def end(row: Record) -> End:
    """How the run ended, as far as the row says."""
    said = row.get("end")
    if said == End.OTHER and row.get("status") == "optimal":
        return End.PROVED
    if said == End.OTHER and row.get("scip") in DONE:
        return End.CLAIMED
    if said == End.OTHER and NO_MEMORY in (row.get("message") or ""):
        return End.MEMORY
    return End(said) if said in set(End) else End.UNKNOWN


def spent(rows: Sequence[Record], name: str, limit: float) -> bool:
    """Whether each of these runs, and there are some, spent all of a limit by this field."""
    return bool(rows) and min(known(rows, name), default=0.0) >= ALL_OF_IT * limit


def done(row: Record) -> bool:
    """Whether SCIP came to its end: its seconds are what it needs, no lower bound."""
    return end(row) in (End.PROVED, End.CLAIMED)


def searched(row: Record) -> bool:
    """Whether SCIP had its whole time, or needed less: its seconds can be compared."""
    return done(row) or end(row) is End.TIME


def put_to_the_test(row: Record) -> bool:
    """Whether big-M was really put to the test: SCIP searched, or memory really ran out."""
    return searched(row) or end(row) is End.MEMORY


def tally(rows: Sequence[Record]) -> str:
    """How many ended how, such as "3 proved, 1 out of memory (at 12 GB)"; every row is in it."""
    counts = Counter(map(end, rows))
    return ", ".join(f"{counts[how]} {words}{_at(how, rows)}" for how, words in WORDS.items() if counts[how])


def _at(how: End, rows: Sequence[Record]) -> str:
    if how is not End.MEMORY:
        return ""
    peaks = known([row for row in rows if end(row) is how], "memory_gb")
    return (
        f" (at {text(min(peaks))} GB and more)"
        if len(peaks) > 1
        else f" (at {text(peaks[0])} GB)"
        if peaks
        else ""
    )


def refusals(rows: Sequence[Record]) -> str:
    """Why runs were refused, in the words of the refusal up to its advice, and on which networks."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if end(row) is End.REFUSED and row.get("message"):
            reasons.setdefault(str(row["message"]).partition(";")[0], []).append(str(row.get("network")))
    return "; ".join(f"{reason} ({', '.join(dict.fromkeys(reasons[reason]))})" for reason in reasons)

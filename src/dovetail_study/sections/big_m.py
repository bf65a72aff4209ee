"""How big-M's runs ended, cell by cell: writing and solving apart, memory, and what had to be written."""

from __future__ import annotations

from collections.abc import Sequence

from dovetail_study.contestants import BASELINES
from dovetail_study.ends import WORDS, End, end, refusals
from dovetail_study.experiment import Rows
from dovetail_study.origin import order
from dovetail_study.run import Record
from dovetail_study.statistics import average, count_of, found, known, present, spread_of, text, where
from dovetail_study.table import ResultTable

MEASURED = (
    "writing, s",
    "solving, s",
    "peak memory, GB",
    "variables",
    "constraints",
    "SCIP's own count",
    "point found",
)
READING = (
    "One column for each way in which a run can end (the field `end`); every run is in one of them. "
    "*Proved*: so says `end`, or it says other and the status is optimal; *SCIP says optimal, not "
    "confirmed*: it says other and SCIP's last word is optimal, but the verified point does not meet its "
    "bound; *searched to the limit*: SCIP had all its seconds; *never finished writing*: it did not begin; "
    "*out of memory*: the process met its limit; *infeasible beside a verified point*: SCIP calls infeasible "
    "what is not, and is not believed; *refused*: a layer that cannot be written, or bounds of neurons that "
    "SCIP cannot compute with. *SCIP's own count* is what SCIP thinks its best point is worth, before the "
    "network itself is asked."
)


def tables(name: str, title: str, rows: Rows, *fields: str) -> list[ResultTable]:
    """The runs of each form of big-M that was run, grouped by these fields."""
    return [_table(name, title, where(rows, method=method), fields) for method in present(BASELINES, rows)]


def _table(name: str, title: str, mine: Rows, fields: Sequence[str]) -> ResultTable:
    method = mine[0]["method"]
    ways = [how for how in WORDS if any(end(row) is how for row in mine)]
    header = (*fields, "runs", *[WORDS[how] for how in ways], *MEASURED)
    made = ResultTable(
        f"{name}-{method}",
        f"{title}: how {method} ended",
        header,
        reading=READING + _silent(mine) + _refused(mine),
        records=mine,
    )
    cells: dict[tuple[object, ...], list[Record]] = {}
    for row in mine:
        cells.setdefault(tuple(row.get(field) for field in fields), []).append(row)
    for place, cell in sorted(cells.items(), key=lambda item: list(map(order, item[0]))):
        counts = [str(sum(end(row) is how for row in cell)) for how in ways]
        made.rows.append([*map(_name, place), str(len(cell)), *counts, *_measured(cell)])
    return made


def _silent(rows: Rows) -> str:
    """Runs whose SCIP was ended from outside: what it would have said is not known."""
    silent = [row for row in rows if end(row) is End.TIME and "scip" in row and row["scip"] is None]
    if not silent:
        return ""
    return (
        f" In {len(silent)} of {len(rows)} runs SCIP did not end when it was asked to: what it would have "
        "said is not known."
    )


def _refused(rows: Rows) -> str:
    why = refusals(rows)
    return f" Refused: {why}." if why else ""


def _name(value: object) -> str:
    return "–" if value is None else str(value)


def _measured(cell: Rows) -> list[str]:
    return [
        spread_of(cell, "writing_seconds"),
        spread_of(cell, "solving_seconds"),
        *[text(max(known(cell, name), default=None)) for name in ("memory_gb", "variables", "constraints")],
        text(average(cell, "raw")),
        count_of(cell, found),
    ]

"""The common parts of several experiments' tables: the points reached, and how big-M's runs ended."""

from __future__ import annotations

from collections.abc import Sequence

import dovetail as dt
from dovetail_study.contestants import AUTO, BASELINES
from dovetail_study.experiment import Record, ResultTable, Rows
from dovetail_study.origin import order
from dovetail_study.statistics import (
    WORDS,
    End,
    Reachable,
    average,
    converged,
    count_of,
    distinct,
    end,
    found,
    known,
    mean,
    present,
    refusals,
    spread,
    spread_of,
    text,
    where,
)

COUNTS = ("untouched", "potable", "newly flipped", "best known", "gap to it, %")
UNITS = "of *paper* and its variants in the user's units, of *dual-decomposition* in box widths"
NO_REFERENCE = "no reference yet"
ENDING = ("improved on the start", "converged", "last residual", "engine", "seconds")
HOW_TO_READ = (
    "Means over seeds ± their standard deviation. *Untouched*: potable when nothing is done, since the "
    "network errs on some undrinkable samples; *potable*: at the end, over the runs in which the method "
    "itself found a verified point; *newly flipped*: potable at the end and not before (a method may also "
    "lose an untouched one). *Best known*: the best verified point of any method on the same "
    "instances, over those (so many of the runs') into which *auto* looked as a reference or whose optimum "
    "is proved, with the number proved; *gap*: by how much the runs that have a point fall short of it "
    "there. *Improved on the start*: a loop's own point is the start's, which is to do nothing, until it "
    "finds a better one; a run that never does is counted with the start's value. *Converged*: the largest "
    f"difference of u and x below {dt.DualDecomposition.paper().tolerance:g} "
    f"within the iterations, or nothing better exists; *last residual*: that difference at the end, {UNITS}. "
    "*Seconds* are those to the end of the run, converged or not, and include building the model; *engine*: "
    "what solved the MIP steps."
)
TOTALS = "Budgets are totals over all samples."


def reached(cell: Rows, reachable: Reachable) -> list[str]:
    """The numbers of potable samples, and the gap to the best known."""
    points = [row for row in cell if found(row)]
    return [
        spread_of(cell, "untouched"),
        spread_of(points, "potable"),
        spread_of(points, "flipped"),
        best_known(cell, reachable),
        gap(points, reachable),
    ]


def best_known(cell: Rows, reachable: Reachable, digits: int = 3) -> str:
    """The mean of the best known over the instances that have one, and the numbers of these instances and of
    proved ones."""
    looked, proved = sum(map(reachable.known, cell)), sum(map(reachable.proved, cell))
    notes = [f"{looked} of {len(cell)}"] * (0 < looked < len(cell)) + [f"{proved} proved"] * (proved > 0)
    if not looked:
        return NO_REFERENCE
    return text(mean(reachable.values(cell)), digits) + (f" ({', '.join(notes)})" if notes else "")


def gap(points: Rows, reachable: Reachable) -> str:
    """The gap to the best known in per cent, for runs with a point."""
    if points and not any(map(reachable.known, points)):
        return NO_REFERENCE
    return spread([round(100.0 * (1.0 - part), 3) for part in reachable.shares(points)])


def ending(cell: Rows) -> list[str]:
    """How runs ended and how long that took."""
    baseline = cell[0]["method"] in BASELINES
    return [
        "–" if baseline or cell[0]["method"] == AUTO else count_of(cell, improved),
        count_of(cell, converged),
        "–" if baseline else text(mean(known(cell, "residual")), 2),
        engines(cell),
        spread_of(cell, "seconds"),
    ]


def improved(row: Record) -> bool:
    """Whether a loop found a point that is better than the one it started from."""
    return row.get("best_at") is not None


def engines(cell: Rows) -> str:
    """The engine of these runs' MIP steps."""
    return ", ".join(name for name in distinct(cell, "engine") if name) or "–"


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


def how_big_m_ended(name: str, title: str, rows: Rows, *fields: str) -> list[ResultTable]:
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
        reading=READING + _interrupted_runs(mine) + _refused(mine),
        records=mine,
    )
    cells: dict[tuple[object, ...], list[Record]] = {}
    for row in mine:
        cells.setdefault(tuple(row.get(field) for field in fields), []).append(row)
    for place, cell in sorted(cells.items(), key=lambda item: list(map(order, item[0]))):
        counts = [str(sum(end(row) is how for row in cell)) for how in ways]
        made.rows.append([*map(_name, place), str(len(cell)), *counts, *_measured(cell)])
    return made


def _interrupted_runs(rows: Rows) -> str:
    """Runs whose SCIP was ended from outside, so that its result is unknown."""
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

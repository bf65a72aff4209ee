"""Columns that several tables share: what was reached, beside what is reachable, and how the run ended."""

from __future__ import annotations

from dovetail.experiments.best_known import Reachable
from dovetail.experiments.contestants import BASELINES
from dovetail.experiments.experiment import Rows
from dovetail.experiments.statistics import (
    converged,
    count_of,
    distinct,
    found,
    known,
    mean,
    spread,
    spread_of,
    text,
)

COUNTS = ("untouched", "potable", "newly flipped", "best known", "gap to it, %")
ENDING = ("converged", "last residual", "engine", "seconds")
HOW_TO_READ = (
    "Means over seeds ± their standard deviation. *Untouched*: potable when nothing is done, since the "
    "network errs on some undrinkable samples; *potable*: at the end, over the runs in which the method "
    "itself found a verified point; *best known*: the best verified point of any method on the same "
    "instances, with the number of them in which it is proved optimal; *gap*: by how much the runs that have "
    "a point fall short of it. *Converged*: the largest difference of u and x below 1e-4 within the "
    "iterations, or nothing better exists; *last residual*: that difference at the end. *Seconds* are those "
    "to the end of the run, converged or not, and include building the model; *engine*: what solved the MIP "
    "steps."
)


def reached(cell: Rows, reachable: Reachable) -> list[str]:
    """Potable samples and how far they are from what is reachable."""
    points = [row for row in cell if found(row)]
    return [
        spread_of(cell, "untouched"),
        spread_of(points, "potable"),
        spread_of(points, "flipped"),
        best_known(cell, reachable),
        gap(points, reachable),
    ]


def best_known(cell: Rows, reachable: Reachable) -> str:
    """The mean of the best known on the cell's instances, and in how many it is proved."""
    proved = sum(map(reachable.proved, cell))
    return text(mean(reachable.values(cell))) + (f" ({proved} proved)" if proved else "")


def gap(points: Rows, reachable: Reachable) -> str:
    """By how many per cent runs that have a point fall short of the best known."""
    return spread([100.0 * (1.0 - part) for part in reachable.shares(points)], 2)


def ending(cell: Rows) -> list[str]:
    """How runs ended and how long that took."""
    baseline = cell[0]["method"] in BASELINES
    return [
        count_of(cell, converged),
        "–" if baseline else text(mean(known(cell, "residual")), 2),
        engines(cell),
        spread_of(cell, "seconds"),
    ]


def engines(cell: Rows) -> str:
    """What solved the MIP steps of these runs."""
    return ", ".join(name for name in distinct(cell, "engine") if name) or "–"

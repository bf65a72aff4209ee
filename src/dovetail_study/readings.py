"""The paper's algorithm, reading by reading: the choices that its text leaves open, compared on other seeds
than its own.

The paper fixes rho, the step, the number of steps and iterations, and the tolerance. Its text leaves open:

    surrogate   what stands for a class in the network step: "we back-propagate through the network", and a
                class, 0 or 1, has no gradient
    state       whether Adam begins anew in each iteration: "25 Adam steps"
    iterate     whether the last or the best of these steps is u(k)
    start       where they start: at u(k-1), or at x(k)
    rho         whether the experiments kept it at 10 ("rho = 10.0") or adapted it ("adjust adaptively")

One reading is chosen for the whole paper, on these seeds, and judged on the paper's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, get_args

import dovetail as dt
from dovetail_study.contestants import AUTO, on_trees, on_water
from dovetail_study.experiment import NOTHING, BenchSettings, Experiment, Record, ResultTable, Rows, Run, runs
from dovetail_study.figures import Drawing
from dovetail_study.paper import BUDGETS
from dovetail_study.statistics import Reachable, converged, count_of, mean, present, text, where

Surrogate = Literal["logit", "log-probability", "probability", "scaled-probability"]
NAME = "readings"
OTHER_SEEDS = (7, 11, 13)
"""None of the paper's seeds: a reading that is chosen on these is judged on others."""


@dataclass(frozen=True)
class PaperReading:
    """One interpretation of the algorithm's open choices."""

    surrogate: Surrogate
    state: Literal["fresh", "kept"] = "fresh"
    iterate: Literal["last", "best"] = "best"
    start: Literal["copies", "mip"] = "copies"
    rho: Literal["fixed", "adaptive"] = "fixed"

    @property
    def name(self) -> str:
        """The method name of its runs."""
        start = {"copies": "u(k-1)", "mip": "x(k)"}[self.start]
        return f"{self.surrogate} {self.state} {self.iterate} {start} {self.rho}"

    def method(self) -> dt.DualDecomposition:
        """The paper's settings in this reading."""
        paper = dt.DualDecomposition.paper(adaptive=self.rho == "adaptive")
        solver = paper.nn_solver
        assert isinstance(solver, dt.ProjectedGradient)
        steps = replace(solver, state=self.state, keep_best=self.iterate == "best")
        return replace(paper, surrogate=self.surrogate, network_start=self.start, nn_solver=steps)


CHOSEN = PaperReading("logit")
"""The reading of `DualDecomposition.paper()`, chosen by this table on these seeds."""
READINGS = dict.fromkeys(
    [
        *[replace(CHOSEN, surrogate=surrogate) for surrogate in get_args(Surrogate)],
        *[
            replace(CHOSEN, state=state, iterate=iterate, start=start)
            for state in ("fresh", "kept")
            for iterate in ("last", "best")
            for start in ("copies", "mip")
        ],
        replace(CHOSEN, rho="adaptive"),
        replace(CHOSEN, rho="adaptive", iterate="last"),
        PaperReading("scaled-probability", iterate="last"),
    ]
)
"""Surrogates with all else as chosen; state, iterate and start with the logit; an adapted rho; and the
reading that this study had before, which is the scaled probability with the last iterate."""
BY_NAME = {reading.name: reading for reading in READINGS}
OTHER_LOOPS: dict[str, Callable[[Surrogate], Any]] = {
    "dual-decomposition": lambda surrogate: dt.DualDecomposition(surrogate=surrogate),
    "ssg": lambda surrogate: dt.SingleStepGradient(surrogate=surrogate),
}
"""The methods step through the same surrogate, so the replacements of a class are compared for them too."""
BY_LOOP = {
    f"{loop} {surrogate}": partial(method, surrogate)
    for loop, method in OTHER_LOOPS.items()
    for surrogate in get_args(Surrogate)
}
_MADE: dict[str, Callable[[], Any]] = {
    **{name: reading.method for name, reading in BY_NAME.items()},
    **BY_LOOP,
}

TREES = "E5"
"""Its networks predict a probability: there is no class to replace."""
CELLS: dict[str, list[dict[str, Any]]] = {
    **{
        f"E1 and E3, budgets {budgets}": [
            {"network": network, "n": n, "budgets": budgets}
            for network, n in (("2x16", 20), ("2x16", 80), ("4x32", 50), ("6x64", 100))
        ]
        for budgets in BUDGETS
    },
    "E2, constant networks": [
        {"network": network, "n": 100, "init": "default"} for network in ("8x64", "16x128")
    ],
    **{
        f"E2 and E4, budgets {budgets}": [
            {"network": network, "n": n, "budgets": budgets}
            for network, n in (("8x64", 100), ("16x128", 100), ("conv1d", 60), ("residual", 60), ("lstm", 60))
        ]
        for budgets in BUDGETS
    },
    TREES: [{"network": "8x32", "grid": 6}],
}
"""A few instances of each experiment's kind, by the measure that judges them."""


def _runs(settings: BenchSettings) -> list[Run]:
    cells = [cell for name, group in CELLS.items() if name != TREES for cell in group]
    if settings.quick:
        cells = [{**cell, "n": 4} for cell in cells[:1]]
        return runs(NAME, cells, (CHOSEN.name, AUTO), settings)
    own = replace(settings, seeds=OTHER_SEEDS)
    without_class = [name for name, reading in BY_NAME.items() if reading.surrogate == CHOSEN.surrogate]
    planned = runs(NAME, cells, (*BY_NAME, *BY_LOOP, AUTO), own)
    return planned + runs(NAME, CELLS[TREES], (*without_class, AUTO), own)


def _execute(run: Run, settings: BenchSettings) -> Record:
    solve = on_trees if "grid" in dict(run.cell) else on_water
    return solve(run, settings, None if run.method == AUTO else _MADE[run.method]())


def tables(rows: Rows) -> list[ResultTable]:
    """The fraction of the best known that every reading reaches, and how many of its runs end; then other
    loops."""
    water = [name for name in CELLS if name != TREES]
    readings = _table(
        NAME,
        "The readings, on seeds that are not the paper's",
        "reading: surrogate, Adam's state, iterate, start, rho",
        [*BY_NAME, AUTO],
        list(CELLS),
        rows,
        f"The reading of this page is *{CHOSEN.name}*: of the readings that keep E5, the one with the "
        "highest share with budgets per sample, and constant networks agree.",
    )
    loops = _table(
        f"{NAME}-loops",
        "What stands for a class in our own loop and in SSG",
        "method and surrogate",
        list(BY_LOOP),
        water,
        rows,
        f"*dual-decomposition* takes {dt.DualDecomposition().surrogate} unless told otherwise, *ssg* "
        f"{dt.SingleStepGradient().surrogate}: the highest mean over both kinds of budgets.",
    )
    return [table for table in (readings, loops) if table.rows]


def _table(
    name: str, title: str, first: str, methods: Sequence[str], groups: Sequence[str], rows: Rows, chosen: str
) -> ResultTable:
    reachable = Reachable(rows)
    mine = [row for row in rows if row["method"] in methods]
    table = ResultTable(
        name,
        title,
        (first, "runs", *groups),
        reading="The mean share of the best known, and how many runs converged: the blocks agreed within 50 "
        "iterations, or the point was proved optimal (every sample is potable). Constant networks have "
        f"nothing to reach. {chosen}",
        records=mine,
    )
    for method in present(methods, mine):
        own = where(mine, method=method)
        cells = [_cell(_rows_of(own, CELLS[group]), reachable) for group in groups]
        table.rows.append([method, str(len(own)), *cells])
    return table


def _rows_of(rows: Rows, group: Sequence[dict[str, Any]]) -> list[Record]:
    return [row for cell in group for row in where(rows, **cell)]


def _cell(rows: Rows, reachable: Reachable) -> str:
    if not rows:
        return NOTHING
    shares = reachable.shares(rows)
    reached = f"{text(mean(shares))}, " if shares else ""
    return f"{reached}{count_of(rows, converged)} converged"


def draw(rows: Rows) -> Drawing | None:
    """No figure; the table has all numbers."""
    return None


EXPERIMENT = Experiment(
    NAME,
    "Readings of the algorithm",
    (*BY_NAME, *BY_LOOP, AUTO),
    _runs,
    _execute,
    tables,
    lambda rows: [],
    draw,
)

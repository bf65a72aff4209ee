"""How much rests on rho and the step size: the first limitation the paper names."""

from __future__ import annotations

from dataclasses import replace

import dovetail as dt
from dovetail_study.best_known import Reachable
from dovetail_study.claims import sensitivity as claims
from dovetail_study.contestants import CONTESTANTS
from dovetail_study.experiment import Experiment, Rows
from dovetail_study.figures import Drawing, LinesPanel
from dovetail_study.instances import on_water
from dovetail_study.paper import RHO, STEP
from dovetail_study.run import BenchSettings, Record, Run, runs
from dovetail_study.sections.columns import COUNTS, ENDING, HOW_TO_READ, TOTALS, ending, reached
from dovetail_study.statistics import average, converged, distinct, present, share, spread_of, text, where
from dovetail_study.table import ResultTable

NAME = "sensitivity"
METHODS = ("paper", "paper-adaptive", "paper-balanced", "dual-decomposition")
RHOS, STEPS = (0.1, 1.0, 10.0, 100.0, 1000.0), (0.001, 0.003, 0.01, 0.03, 0.1)
"""Two powers of ten around the paper's rho, one around its step size."""


HEADER = ("rho", "step", "method", "runs", *COUNTS, "iterations", *ENDING)


def tables(rows: Rows) -> list[ResultTable]:
    """One line per setting and method."""
    reachable = Reachable(rows, references=None)
    table = ResultTable(
        "sensitivity",
        "Sensitivity to rho and step size",
        HEADER,
        reading=f"{HOW_TO_READ} {TOTALS} Here the best known is the best of these runs: no reference "
        "looked. E1 has the same instances (2x16, n = 50, totals) with one. *paper*: rho fixed; "
        "*paper-adaptive*: rho raised whenever the primal residual ceases to decrease, as the paper's "
        "section on the method has it; *paper-balanced*: balanced between residuals, which may lower it too. "
        "The paper leaves open whether its experiments kept rho fixed. *dual-decomposition*: our defaults "
        "otherwise (scaled inputs, decaying steps), where rho is per box width and not comparable number by "
        "number.",
        records=rows,
    )
    cells = dict.fromkeys((row["rho"], row["step"]) for row in rows)
    for rho, step in sorted(cells):
        for method in present(CONTESTANTS, rows):
            cell = where(rows, rho=rho, step=step, method=method)
            if cell:
                place = [text(rho), text(step), method, str(len(cell))]
                iterations = spread_of(cell, "iterations")
                table.rows.append([*place, *reached(cell, reachable), iterations, *ending(cell)])
    return [table]


def reading(rows: Rows) -> str:
    """Which rho is best for whom."""
    parts = []
    for method in present(CONTESTANTS, rows):
        mine = where(rows, method=method, step=STEP)
        flips = {rho: average(where(mine, rho=rho), "flipped") for rho in sorted(distinct(mine, "rho"))}
        there = {rho: value for rho, value in flips.items() if value == value}
        if there:
            best = max(there, key=lambda rho: there[rho])
            parts.append(f"{method} {text(best)} ({text(there[best])} newly flipped)")
    return f"The rho with the most newly flipped samples: {', '.join(parts)}." if parts else ""


def draw(rows: Rows) -> Drawing | None:
    """Newly flipped over rho and over the step, and convergence."""
    methods = present(CONTESTANTS, rows)
    if not methods:
        return None
    rhos = sorted(distinct(where(rows, step=STEP), "rho"))
    steps = sorted(distinct(where(rows, rho=RHO), "step"))

    def over_rho(m: str, rho: float) -> Rows:
        return where(rows, method=m, rho=rho, step=STEP)

    def over_step(m: str, step: float) -> Rows:
        return where(rows, method=m, rho=RHO, step=step)

    by_rho = {m: [(rho, average(over_rho(m, rho), "flipped")) for rho in rhos] for m in methods}
    by_step = {m: [(step, average(over_step(m, step), "flipped")) for step in steps] for m in methods}
    rates = {m: [(rho, share(over_rho(m, rho), converged)) for rho in rhos] for m in methods}
    flipped = "newly flipped samples"
    return Drawing(
        "Sensitivity on water (2x16)",
        [
            LinesPanel("newly flipped against rho", "rho", flipped, by_rho, log_x=True),
            LinesPanel("newly flipped against step size", "step size", flipped, by_step, log_x=True),
            LinesPanel("converged, against rho", "rho", "share of runs", rates, log_x=True),
        ],
    )


def _runs(settings: BenchSettings) -> list[Run]:
    shared = {"network": "2x16", "n": 5 if settings.quick else 50}
    rhos, steps = ((1.0, 100.0), (0.001, 0.1)) if settings.quick else (RHOS, STEPS)
    cells = [{**shared, "rho": rho, "step": STEP} for rho in sorted({*rhos, RHO})]
    cells += [{**shared, "rho": RHO, "step": step} for step in steps if step != STEP]
    return runs(NAME, cells, METHODS, settings)


def _execute(run: Run, settings: BenchSettings) -> Record:
    method: dt.DualDecomposition = CONTESTANTS[run.method]()
    solver = method.nn_solver
    assert isinstance(solver, dt.ProjectedGradient)
    tuned = replace(method, rho=run["rho"], nn_solver=replace(solver, lr=run["step"]))
    return on_water(run, settings, tuned)


SENSITIVITY = Experiment(
    NAME, "Sensitivity to rho and step size", METHODS, _runs, _execute, tables, claims.verdicts, draw, reading
)

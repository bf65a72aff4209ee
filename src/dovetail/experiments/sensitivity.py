"""How much rests on rho and the step size: the first limitation the paper names."""

from __future__ import annotations

import math
from dataclasses import replace

import dovetail as dt
from dovetail.experiments.contestants import CONTESTANTS
from dovetail.experiments.experiment import Experiment, Rows
from dovetail.experiments.figures import Drawing, Lines
from dovetail.experiments.instances import on_water
from dovetail.experiments.run import Record, Run, Settings, runs
from dovetail.experiments.statistics import average, converged, distinct, present, share, text, where
from dovetail.experiments.table import Table
from dovetail.experiments.verdict import Verdict, judged

NAME = "sensitivity"
METHODS = ("paper", "paper-adaptive", "paper-balanced", "dual-decomposition")
RHO, STEPS = (0.1, 1.0, 10.0, 100.0, 1000.0), (0.001, 0.003, 0.01, 0.03, 0.1)
"""Two powers of ten around the paper's rho, one around its step size."""
PAPER_RHO, PAPER_STEP = 10.0, 0.01


def _runs(settings: Settings) -> list[Run]:
    shared = {"network": "2x16", "n": 5 if settings.quick else 50}
    rhos, steps = ((1.0, 100.0), (0.001, 0.1)) if settings.quick else (RHO, STEPS)
    cells = [{**shared, "rho": rho, "step": PAPER_STEP} for rho in sorted({*rhos, PAPER_RHO})]
    cells += [{**shared, "rho": PAPER_RHO, "step": step} for step in steps if step != PAPER_STEP]
    return runs(NAME, cells, METHODS, settings)


def _execute(run: Run, settings: Settings) -> Record:
    method: dt.DualDecomposition = CONTESTANTS[run.method]()
    solver = method.nn_solver
    assert isinstance(solver, dt.ProjectedGradient)
    tuned = replace(method, rho=run["rho"], nn_solver=replace(solver, lr=run["step"]))
    return on_water(run, settings, tuned)


def _tables(rows: Rows) -> list[Table]:
    table = Table(
        "sensitivity",
        "Sensitivity to rho and step size, means over seeds",
        (
            "rho",
            "step",
            "method",
            "runs",
            "converged",
            "iterations",
            "untouched",
            "potable",
            "newly flipped",
            "seconds",
        ),
        reading=(
            "*paper*: rho fixed; *paper-adaptive*: rho balanced between residuals as the loop goes; "
            "*dual-decomposition*: our defaults otherwise (scaled inputs, adaptive, decaying steps), "
            "where rho is per box width and not comparable number by number."
        ),
    )
    cells = dict.fromkeys((row["rho"], row["step"]) for row in rows)
    for rho, step in sorted(cells):
        for method in present(METHODS, rows):
            cell = where(rows, rho=rho, step=step, method=method)
            if cell:
                table.rows.append(
                    [
                        text(rho),
                        text(step),
                        method,
                        str(len(cell)),
                        str(sum(map(converged, cell))),
                        text(average(cell, "iterations")),
                        text(average(cell, "untouched")),
                        text(average(cell, "potable")),
                        text(average(cell, "flipped")),
                        text(average(cell, "seconds")),
                    ]
                )
    return [table]


def _verdicts(rows: Rows) -> list[Verdict]:
    paper = where(rows, method="paper")
    by_rho, by_step = _flipped(paper, "rho", step=PAPER_STEP), _flipped(paper, "step", rho=PAPER_RHO)
    adaptive = _flipped(where(rows, method="paper-adaptive"), "rho", step=PAPER_STEP)
    ours = _flipped(where(rows, method="dual-decomposition"), "rho", step=PAPER_STEP)
    rates = [share(where(paper, rho=rho, step=PAPER_STEP), converged) for rho in by_rho]
    return [
        judged(
            "Convergence depends on rho and step size",
            "its first limitation",
            f"newly flipped samples {_range(by_rho)} over rho, {_range(by_step)} over the step; converged "
            f"in {text(100 * min(rates, default=math.nan))} to {text(100 * max(rates, default=math.nan))} "
            "% over rho",
            holds=_depends(by_rho) and _depends(by_step) if by_rho and by_step else None,
            in_part=_depends(by_rho) or _depends(by_step),
            rule="the least is below 0.8 of the most, over rho and over the step",
        ),
        judged(
            "Raising rho adaptively gives robustness",
            "robustness and efficiency",
            f"over rho the newly flipped vary {_range(by_rho)} with rho fixed, {_range(adaptive)} with it "
            f"adapted, {_range(ours)} with our defaults otherwise",
            holds=_play(adaptive) <= 0.5 * _play(by_rho) if by_rho and adaptive else None,
            in_part=bool(adaptive) and bool(by_rho) and _play(adaptive) < _play(by_rho),
            rule="adapted, the spread over rho is at most half; in part: smaller",
        ),
    ]


def _flipped(rows: Rows, name: str, **fixed: float) -> dict[float, float]:
    """Newly flipped samples for each value of one setting, the other at the paper's."""
    mine = where(rows, **fixed)
    return {value: average(where(mine, **{name: value}), "flipped") for value in sorted(distinct(mine, name))}


def _range(numbers: dict[float, float]) -> str:
    return f"{text(min(numbers.values()))} to {text(max(numbers.values()))}" if numbers else "–"


def _play(numbers: dict[float, float]) -> float:
    return max(numbers.values()) - min(numbers.values())


def _depends(numbers: dict[float, float]) -> bool:
    return bool(numbers) and min(numbers.values()) < 0.8 * max(numbers.values())


def _draw(rows: Rows) -> Drawing | None:
    methods = present(METHODS, rows)
    if not methods:
        return None
    rhos = sorted(distinct(where(rows, step=PAPER_STEP), "rho"))
    steps = sorted(distinct(where(rows, rho=PAPER_RHO), "step"))

    def over_rho(m: str, rho: float) -> Rows:
        return where(rows, method=m, rho=rho, step=PAPER_STEP)

    def over_step(m: str, step: float) -> Rows:
        return where(rows, method=m, rho=PAPER_RHO, step=step)

    return Drawing(
        "Sensitivity on water (2x16)",
        [
            Lines(
                "newly flipped against rho",
                "rho",
                "newly flipped samples",
                {m: [(rho, average(over_rho(m, rho), "flipped")) for rho in rhos] for m in methods},
                log_x=True,
            ),
            Lines(
                "newly flipped against step size",
                "step size",
                "newly flipped samples",
                {m: [(step, average(over_step(m, step), "flipped")) for step in steps] for m in methods},
                log_x=True,
            ),
            Lines(
                "converged within 50 iterations, against rho",
                "rho",
                "share of runs",
                {m: [(rho, share(over_rho(m, rho), converged)) for rho in rhos] for m in methods},
                log_x=True,
            ),
        ],
    )


SENSITIVITY = Experiment(
    NAME, "Sensitivity to rho and step size", METHODS, _runs, _execute, _tables, _verdicts, _draw
)

"""Theorem 1, judged: boundedness, agreement, rates, and what its KKT points are worth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import dovetail as dt
from dovetail.experiments.contestants import contest
from dovetail.experiments.convex import ASSUMED, FAMILIES, Example
from dovetail.experiments.experiment import Rows
from dovetail.experiments.figures import Lines
from dovetail.experiments.run import Record, Run, Settings
from dovetail.experiments.statistics import average, mean, text, where
from dovetail.experiments.table import Table
from dovetail.experiments.verdict import Verdict, judged, share_held

ITERATIONS, QUICK_ITERATIONS = 200, 24
"""Four times the paper's 50, so that a rate can be seen; multiples of four, since prices come by quarters."""
AGREED = 1e-4
"""The paper's tolerance."""
FLOOR = 1e-8
"""Smaller residuals are drawn as this."""
HEADER = (
    "family", "runs", "u = x at the end", "last residual", "rate O(1/k) kept", "Lagrangian settles",
    "prices bounded", "merit rises in dual steps", "KKT points in X", "agreed point optimal",
    "best visited optimal",
)  # fmt: skip
PATIENCE = 600.0
"""Seconds, in place of the bench's limit: these runs end after their iterations, whatever the clock says."""


def execute(run: Run, settings: Settings) -> Record:
    """Algorithm 1 on an example; prices after one, two and three quarters come from shorter runs."""
    example = Example(run["family"], run.seed)
    iterations = QUICK_ITERATIONS if settings.quick else ITERATIONS
    settings = replace(settings, time_limit=PATIENCE)
    method, problem = example.method(iterations), example.problem()
    row, result = contest(problem, run, settings, method)
    assert result is not None
    quarters = [iterations * quarter // 4 for quarter in (1, 2, 3)]
    shorter = [contest(problem, run, settings, replace(method, iterations=k))[1] for k in quarters]
    return row | {
        "smoothness": example.smoothness,
        "rho": example.rho,
        "residuals": [float(f"{step.primal:.4g}") for step in result.trace],
        "lagrangian": [float(f"{step.lagrangian:.10g}") for step in result.trace],
        "rises": sum(step.merit > step.lagrangian + 1e-12 for step in result.trace),
        "falls": sum(step.merit < step.lagrangian - 1e-12 for step in result.trace),
        "prices": [_price(part) for part in (*shorter, result)],
        "last_objective": result.trace[-1].objective,
        **example.truth(),
    }


def _price(result: dt.Result | None) -> float:
    """The norm of the multipliers a run ended with."""
    assert result is not None
    assert result.multipliers is not None
    return float(np.linalg.norm(result.multipliers.inputs["g"]))


def _agrees(row: Record) -> bool:
    return bool(row["residuals"][-1] <= AGREED)


def _bounded(row: Record) -> bool:
    """Prices after three and four quarters at most twice those after one and two."""
    return bool(max(row["prices"][2:]) <= 2.0 * max(row["prices"][:2]) + 1e-6)


def _rate_holds(row: Record) -> bool:
    """min r^2 over the first k, times k, does not grow from a quarter of the iterations to all of them."""
    k = len(row["residuals"])
    early, late = (min(row["residuals"][:end]) ** 2 * end for end in (k // 4, k))
    return bool(late <= 1.1 * early or late <= AGREED**2 * k)


def _settles(row: Record) -> bool:
    """The augmented Lagrangian comes to rest."""
    tail = row["lagrangian"][-20:]
    return bool(max(tail) - min(tail) <= AGREED * max(1.0, abs(tail[-1])))


def _optimal(row: Record, name: str) -> bool:
    return bool(row[name] is not None and row[name] <= row["optimum"] + AGREED)


def _share_optimal(rows: Rows, name: str) -> str:
    known = [row for row in rows if row["optimum"] is not None and (name == "objective" or _agrees(row))]
    return f"{sum(_optimal(row, name) for row in known)} of {len(known)}" if known else "–"


def tables(rows: Rows) -> list[Table]:
    """One row per family."""
    table = Table(
        "theory",
        "Theorem 1 under its own assumptions: rho = 1.5 L, both steps solved to the end",
        HEADER,
        reading=(
            "Counts of runs; *merit rises* counts iterations. The proof has the merit *fall* by half rho "
            "times the squared residual in the dual step; by its own definition it *rises* by rho times "
            "the squared residual, so the descent lemma fails wherever u and x differ. What the theorem "
            "concludes is seen all the same where rho > L and X and C share a point. But with rho > L "
            "many whole points satisfy its KKT system (*KKT points in X*, counted by enumeration), and "
            "the one the loop agrees on is rarely the best. Where X and C share no point, which "
            "Assumption 1 allows, u and x cycle for ever at a distance; with rho below L they may cycle "
            "too."
        ),
    )
    by_family = {family: where(rows, family=family) for family in FAMILIES}
    table.rows += [_line(family, mine) for family, mine in by_family.items() if mine]
    return [table] if table.rows else []


def _line(family: str, mine: Rows) -> list[str]:
    rises, steps = (sum(row[name] for row in mine) for name in ("rises", "iterations"))
    return [
        family,
        str(len(mine)),
        str(sum(map(_agrees, mine))),
        text(mean([row["residuals"][-1] for row in mine]), 2),
        str(sum(map(_rate_holds, mine))),
        str(sum(map(_settles, mine))),
        str(sum(map(_bounded, mine))),
        f"{rises} of {steps}",
        f"{text(average(mine, 'kkt'))} of {text(average(mine, 'points'))}",
        _share_optimal(mine, "last_objective"),
        _share_optimal(mine, "objective"),
    ]


def verdicts(rows: Rows) -> list[Verdict]:
    """One per statement of the theorem, and one for the proof."""
    assumed = [row for row in rows if row["family"] in ASSUMED]
    return [
        share_held(
            "Theorem 1: the iterates stay bounded",
            "proved",
            "x lies in a box; prices do not grow over the second half of the iterations",
            [_bounded(row) for row in assumed],
            "prices after three and four quarters at most twice those after one and two",
        ),
        _agreement(assumed, where(rows, family="small rho")),
        _worth([row for row in assumed if row["kkt"] is not None and _agrees(row)]),
        share_held(
            "Theorem 1: residuals fall like O(1/k)",
            "proved",
            "k times the least squared residual does not grow over the last three quarters of the iterations",
            [_rate_holds(row) for row in assumed],
            "k times it at the end at most 1.1 times what it was after a quarter, or the residual is 1e-4",
        ),
        share_held(
            "Theorem 1: the augmented Lagrangian converges",
            "like O(1/k)",
            "it comes to rest",
            [_settles(row) for row in assumed],
            "its last 20 values are within 1e-4 of each other; the rate is not judged",
        ),
        _dual_step(assumed),
    ]


def _agreement(assumed: Rows, small: Rows) -> Verdict:
    sharing = [row for row in assumed if row["family"] != "apart"]
    apart = where(assumed, family="apart")
    return share_held(
        "Theorem 1: every limit is a KKT point (u = x)",
        "proved",
        f"u = x at the end in {sum(map(_agrees, sharing))} of {len(sharing)} runs where X and C share "
        f"a point, {sum(map(_agrees, apart))} of {len(apart)} where they do not, "
        f"{sum(map(_agrees, small))} of {len(small)} with rho < L",
        [_agrees(row) for row in assumed],
        "the last residual is at most 1e-4 in every run that satisfies the assumptions",
    )


def _worth(agreed: Rows) -> Verdict:
    best = sum(_optimal(row, "last_objective") for row in agreed)
    return judged(
        "Theorem 1: a KKT point is a good answer",
        "without loss of optimality",
        f"with integers {text(average(agreed, 'kkt'))} of {text(average(agreed, 'points'))} points of X "
        f"are KKT points; the agreed one was optimal in {best} of {len(agreed)} runs",
        holds=best == len(agreed) if agreed else None,
        in_part=best > 0,
        rule="the agreed point is the enumerated optimum in every run",
    )


def _dual_step(assumed: Rows) -> Verdict:
    rises, falls = (sum(row[name] for row in assumed) for name in ("rises", "falls"))
    return judged(
        "Proof of Theorem 1: the dual step lowers the merit",
        "falls by rho/2 |u - x|^2",
        f"rises in {rises} iterations, falls in {falls}",
        holds=falls > 0 and rises == 0 if assumed else None,
        rule="it falls in every iteration in which u and x differ",
    )


def panels(rows: Rows) -> list[Lines]:
    """Residual and Lagrangian of the first seed, family by family."""
    if not rows:
        return []
    seed = rows[0]["seed"]
    shown = {row["family"]: row for row in where(rows, seed=seed)}
    residuals = {family: _curve([max(r, FLOOR) for r in row["residuals"]]) for family, row in shown.items()}
    residuals["k^-1/2, as proved"] = _curve([k**-0.5 for k in range(1, ITERATIONS + 1)])
    merits = {family: _curve(row["lagrangian"]) for family, row in shown.items()}
    axes: dict[str, Any] = {"x": "iteration k", "log_x": True}
    return [
        Lines(
            f"residual, seed {seed}",
            y="largest |u - x| (floor 1e-8)",
            series=residuals,
            log_y=True,
            **axes,
        ),
        Lines(f"augmented Lagrangian, seed {seed}", y="value", series=merits, **axes),
    ]


def _curve(values: list[float]) -> list[tuple[float, float]]:
    return [(float(k), value) for k, value in enumerate(values, start=1)]

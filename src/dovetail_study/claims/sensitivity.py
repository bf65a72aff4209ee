"""What rests on rho and the step size: the first limitation the paper names, and its remedy."""

from __future__ import annotations

import math
from dataclasses import replace

from dovetail_study.experiment import Rows
from dovetail_study.paper import RHO, STEP
from dovetail_study.statistics import average, converged, count_of, distinct, mean, share, text, where
from dovetail_study.verdict import Verdict, judged

LESS = 0.8
"""Results depend on a setting if the least is below this part of the most."""
HALF = 0.5


def verdicts(rows: Rows) -> list[Verdict]:
    """Whether it depends, and whether raising rho helps."""
    judged_so = [_dependence(where(rows, method="paper")), _robustness(rows)]
    return [replace(verdict, reading="budgets total") for verdict in judged_so]


def _dependence(rows: Rows) -> Verdict:
    by_rho, by_step = (
        _over(rows, "residual", *over) for over in (("rho", "step", STEP), ("step", "rho", RHO))
    )
    flips = [_over(rows, "flipped", *over) for over in (("rho", "step", STEP), ("step", "rho", RHO))]
    rates = [share(where(rows, rho=rho, step=STEP), converged) for rho in by_rho]
    return judged(
        "Convergence depends on rho and step size",
        "its first limitation",
        f"last residual {_range(by_rho)} over rho, {_range(by_step)} over the step; newly flipped samples "
        f"{_range(flips[0])} over rho, {_range(flips[1])} over the step; converged in "
        f"{text(100 * min(rates, default=math.nan))} to {text(100 * max(rates, default=math.nan))} % over "
        "rho",
        holds=_depends(by_rho) and _depends(by_step) if len(by_rho) > 1 and len(by_step) > 1 else None,
        in_part=_depends(by_rho) or _depends(by_step),
        rule=f"the least mean of the last residual is below {LESS:g} of the most, over rho and over the "
        "step; in part: over one of them",
        rows=rows,
    )


def _robustness(rows: Rows) -> Verdict:
    over = {m: _over(where(rows, method=m), "flipped", "rho", "step", STEP) for m in distinct(rows, "method")}
    fixed, raised = over.get("paper", {}), over.get("paper-adaptive", {})
    others = {m: numbers for m, numbers in over.items() if m not in ("paper", "paper-adaptive")}
    listed = "".join(f"; {m} {_range(numbers)}" for m, numbers in others.items())
    plain, rising = (where(rows, method=m, step=STEP) for m in ("paper", "paper-adaptive"))
    return judged(
        "Raising rho adaptively gives robustness",
        "robustness and efficiency",
        f"over rho the newly flipped vary {_range(fixed)} with rho fixed, {_range(raised)} with it raised "
        f"whenever the residual ceases to decrease{listed}; converged in {count_of(plain, converged)} runs "
        f"with rho fixed, {count_of(rising, converged)} with it raised, which leaves "
        f"{text(mean(list(raised.values())))} newly flipped on average against "
        f"{text(mean(list(fixed.values())))}",
        holds=_play(raised) <= HALF * _play(fixed) if len(fixed) > 1 and len(raised) > 1 else None,
        in_part=_play(raised) <= LESS * _play(fixed),
        rule=f"raised, the spread over rho is at most half; in part: at most {LESS:g} of it",
        rows=where(rows, step=STEP),
    )


def _over(rows: Rows, measured: str, name: str, fixed: str, at: float) -> dict[float, float]:
    """The mean of a field for each value of one setting, the other at the paper's."""
    mine = where(rows, **{fixed: at})
    means = {value: average(where(mine, **{name: value}), measured) for value in sorted(distinct(mine, name))}
    return {value: number for value, number in means.items() if math.isfinite(number)}


def _range(numbers: dict[float, float]) -> str:
    return f"{text(min(numbers.values()))} to {text(max(numbers.values()))}" if numbers else "–"


def _play(numbers: dict[float, float]) -> float:
    return max(numbers.values(), default=math.nan) - min(numbers.values(), default=math.nan)


def _depends(numbers: dict[float, float]) -> bool:
    return bool(numbers) and min(numbers.values()) < LESS * max(numbers.values())

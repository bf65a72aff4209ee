"""What a solve says of a problem whose bounds may be out of reach, held against points found without it."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, field

import numpy as np

import dovetail as dt

from .claims import ABSOLUTE, faults, listen
from .proof_case import Case
from .proof_points import ACCEPTED, EXACT, Point, good_points
from .reach_cases import least_missed, make

WITHIN = 1e-4
"""Relative: the default gap, within which a point is called optimal."""


@dataclass
class Judged:
    """One problem: what was said of it, and what of that is wrong."""

    seed: int
    kinds: list[str] = field(default_factory=list)
    said: str = ""
    """The status; "refused" where the problem was refused before a solve; "raised" for an exception."""
    empty: bool = False
    """Whether no point was found, by anybody."""
    exception: str = ""
    wrong: list[str] = field(default_factory=list)


def judged(seed: int, seconds: float) -> Judged:
    """Make the problem, solve it in so many seconds, and look for points that contradict the answer."""
    found = Judged(seed)
    try:
        case = make(seed)
    except dt.DovetailError as refusal:  # a predictor that gives no numbers, or bounds that cross as given
        found.said, found.exception = "refused", f"{type(refusal).__name__}: {refusal}"
        return found
    found.kinds = case.kinds
    try:
        heard = listen(case.problem, dt.Auto(effort=1), time_limit=seconds, gap=1e-4)
    except dt.PredictorError as refusal:  # numbers that its owner's network gives, met in the search
        found.said, found.exception = "refused", f"{type(refusal).__name__}: {refusal}"
        return found
    except Exception as failure:
        last = [
            f"{frame.filename.split('dovetail/')[-1]}:{frame.lineno}"
            for frame in traceback.extract_tb(failure.__traceback__)
        ]
        found.said = "raised"
        found.exception = f"{type(failure).__name__}: {failure} ({' < '.join(reversed(last[-6:]))})"
        return found
    result = heard.result
    assert result is not None
    found.said, points = str(result.status), _points(case, result)
    found.empty = not points
    sign = case.problem.mip.sign
    room = EXACT * float(np.abs(case.problem.mip.cost).sum())  # what missing bounds by EXACT is worth
    exact = [point for point in points if _missed(case, point) <= EXACT]
    found.wrong = faults(heard, exact, sign, room=room)
    found.wrong += _status_faults(case, result, points, sign)
    return found


def _points(case: Case, result: dt.Result) -> list[Point]:
    """Points that the check accepts, the best first; the answer's own among them."""
    with np.errstate(all="ignore"):
        points = good_points(case, 1, EXACT)
    if result.x is not None:
        points.append(Point(result.x, float(case.worth(result.x[None])[0])))
    if not points:
        amount, x = least_missed(case, 1)
        points += [Point(x, float(case.worth(x[None])[0]))] if amount <= ACCEPTED else []
    return sorted(points, key=lambda point: point.worth)


def _missed(case: Case, point: Point) -> float:
    return float(case.missed(point.x[None])[0])


def _status_faults(case: Case, result: dt.Result, points: list[Point], sign: float) -> list[str]:
    said = []
    if result.status == "infeasible" and points:
        said.append(f"called infeasible, but a point misses by {_missed(case, points[0]):.1e} only")
    if result.x is not None and not dt.check(case.problem, result.x).within():
        said.append("the point does not pass the check")
    if result.status == "optimal":
        exact = [point for point in points if _missed(case, point) <= EXACT]
        best = min((point.worth for point in exact), default=np.inf)
        assert result.objective is not None
        if sign * result.objective > best + WITHIN * abs(best) + ABSOLUTE:
            said.append(f"{result.objective} is called optimal, but {sign * best} is attained")
    if result.x is not None and "no solution" in result.message:
        said.append(f"a point, and yet: {result.message}")
    return said

"""Every bound that a solve claims on its way, held against points that are verified without it.

Bounds are raised in the dark and shown in the trace: both are listened to. A solve whose cutoff is the
optimum hides a wrong bound (what is claimed is the smaller of the two), so each case is also solved *deaf*:
the solve starts from a point that is far from the best and is not allowed a better one, and whatever it
proves must still hold for the best.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from unittest.mock import patch

import numpy as np

import dovetail as dt
from dovetail.branching import plane_boxes
from dovetail.certificates.proof import CertificateKind
from dovetail.certifying.certify import certify
from dovetail.methods import branching
from dovetail.run.bound import Bound
from dovetail.run.incumbent import Incumbent

from .proof_case import Case
from .proof_points import ACCEPTED, EXACT, Point, good_points

RELATIVE, ABSOLUTE = 1e-6, 1e-9
"""A bound may be above a point by this much: as far as `optimal` goes."""
EXACT_ROWS = ("host", "exact", "tables", "scip", "nodes", "tightening")
"""Who proves bounds of exact rows: points that use up the check's tolerance are no matter of theirs."""
WORSE = 1e-3
"""A point so much worse than the best, relative, is a cutoff that must not be proved."""


@dataclass
class Heard:
    """What one solve claimed, in minimisation form."""

    bounds: list[float] = field(default_factory=list)
    """Every bound that was raised."""
    sources: list[str] = field(default_factory=list)
    """By whom."""
    lines: list[tuple[float, float]] = field(default_factory=list)
    """(bound, incumbent) of every line of the trace."""
    result: dt.Result | None = None
    line_sources: list[str] = field(default_factory=list)
    """Who had raised the bound of each line."""
    prices: list[np.ndarray | None] = field(default_factory=list)
    """At what prices of rows each bound was raised, if at any."""


@dataclass
class Count:
    """What a suite has seen."""

    instances: int = 0
    solves: int = 0
    lines: int = 0
    claims: int = 0
    proved: int = 0
    certified: int = 0
    """Certificates of kind `checked` that were made and looked at again."""
    beyond_host: int = 0
    """Cases in which a bound was better than the first one, the host's own."""
    wrong: list[str] = field(default_factory=list)

    def add(self, other: Count) -> None:
        """Both together."""
        for name in ("instances", "solves", "lines", "claims", "proved", "certified", "beyond_host"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.wrong += other.wrong

    def __str__(self) -> str:
        return (
            f"{self.instances} instances, {self.solves} solves, {self.proved} proved, {self.beyond_host} "
            f"with a bound beyond the host's, {self.lines} trace lines, {self.claims} claims, "
            f"{self.certified} certificates, {len(self.wrong)} wrong"
        )


@contextmanager
def _listening(heard: Heard, *, deaf: bool) -> Iterator[None]:
    """Bounds are written down as they are raised; a deaf incumbent keeps the first point it was given."""
    raise_bound, improves = Incumbent.raise_bound, Incumbent._improves

    def raised(self: Incumbent, bound: Bound) -> None:
        heard.bounds.append(float(bound.value))
        heard.sources.append(bound.source)
        heard.prices.append(bound.prices)
        raise_bound(self, bound)

    def improved(self: Incumbent, objective: float, moved: bool = False) -> bool:
        return improves(self, objective, moved) and (self.x is None or not deaf)

    with ExitStack() as stack:
        stack.enter_context(patch.object(Incumbent, "raise_bound", raised))
        stack.enter_context(patch.object(Incumbent, "_improves", improved))
        yield


FEW_BOXES = 32
"""Of a round."""


@contextmanager
def every_round() -> Iterator[None]:
    """Every round of branch and bound is a line of the trace, and rounds are as small as they can be.

    Otherwise there is one in half a second, so that of most small problems nothing is seen but the end.
    """
    with ExitStack() as stack:
        stack.enter_context(patch.object(branching, "REPORT", 0.0))
        stack.enter_context(patch.object(plane_boxes, "BATCH", FEW_BOXES))
        yield


def listen(
    problem: dt.Problem,
    method: object,
    *,
    start: Point | None = None,
    deaf: bool = False,
    time_limit: float = 5.0,
    gap: float = 1e-6,
) -> Heard:
    """Solve, and write down what is claimed."""
    heard, sign = Heard(), problem.mip.sign

    def line(event: dt.Event) -> None:
        bound = -np.inf if event.bound is None else sign * event.bound
        heard.lines.append((bound, sign * event.row.incumbent))
        heard.line_sources.append(heard.sources[int(np.argmax(heard.bounds))] if heard.bounds else "")

    with _listening(heard, deaf=deaf):
        heard.result = dt.solve(
            problem,
            method,  # type: ignore[arg-type]
            start=None if start is None else start.x,
            time_limit=time_limit,
            gap=gap,
            callback=line,
            log=False,
        )
    return heard


def judge(
    case: Case,
    method: object,
    *,
    room: float = EXACT,
    time_limit: float = 5.0,
    deaf_only: bool = False,
    from_best: bool = True,
    certifying: float = 0.0,
) -> Count:
    """Solve a case in the ways there are, and count what is said and what of it is wrong.

    `room` is by how much the points that it is held against may miss rows: `ACCEPTED` for methods that
    widen rows before they prove anything. `certifying` seconds are spent on a certificate of the first solve.
    """
    count = Count(instances=1)
    points = good_points(case, 1, room)
    ways: list[tuple[str, Point | None, bool]] = [] if deaf_only else [("freely", None, False)]
    far = _far(points)
    if points and from_best and not deaf_only:
        ways.append(("from the best", points[0], False))
    if far is not None:
        ways.append(("deaf", far, True))
    for way, start, deaf in ways:
        heard = listen(case.problem, method, start=start, deaf=deaf, time_limit=time_limit)
        assert heard.result is not None
        points = _with_result(case, points, heard.result, room)
        count.solves += 1
        count.lines += len(heard.lines) - sum(room != EXACT and s in EXACT_ROWS for s in heard.line_sources)
        count.claims += len(heard.bounds)
        count.proved += heard.result.status == "optimal"
        count.beyond_host += max(heard.bounds, default=-np.inf) > (heard.bounds or [np.inf])[0] + 1e-6
        said = faults(heard, points, case.problem.mip.sign, deaf=deaf) if room == EXACT else []
        said += _beyond_tolerance(heard, points if room != EXACT else [])
        if certifying and way == ways[0][0]:
            accepted = points if room != EXACT else [*good_points(case, 2, ACCEPTED)[:1], *points[:1]]
            said += _certificate_faults(case, heard, accepted, certifying, count)
        name = f"case {case.seed} ({case.domain}, {', '.join(case.kinds)}) {way}"
        count.wrong += [f"{name}: {what}" for what in said]
    return count


def _certificate_faults(
    case: Case, heard: Heard, accepted: list[Point], seconds: float, count: Count
) -> list[str]:
    """A certificate must hold, and leave every point possible that the check accepts."""
    result, mip = heard.result, case.problem.mip
    if result is None or result.bound is None or result.x is None:
        return []
    last = int(np.argmax(heard.bounds))
    made = certify(case.problem, mip.sign * result.bound, heard.sources[last], seconds, heard.prices[last])
    if made is None or made.kind is not CertificateKind.CHECKED:
        return []
    found = dt.check(case.problem, result.x, certificate=made).verification
    count.certified += 1
    said = [] if found.holds else [f"its certificate does not hold: {found}"]
    best = min((point.worth for point in accepted), default=np.inf)
    if found.bound is not None and mip.sign * found.bound > best + ABSOLUTE * (1.0 + abs(best)):
        said.append(f"the checker proves {mip.sign * found.bound}, but {best} is accepted")
    return said


def _beyond_tolerance(heard: Heard, points: list[Point]) -> list[str]:
    """Claims, of those who widen rows before they prove, that points within the tolerance contradict."""
    if not points:
        return []
    best = points[0].worth
    most = best + RELATIVE * abs(best) + ABSOLUTE
    raised = [*zip(heard.bounds, heard.sources, strict=True)]
    shown = [(bound, who) for (bound, _), who in zip(heard.lines, heard.line_sources, strict=True)]
    return [
        f"{source} {does} a bound of {bound}, but {best} is accepted"
        for does, claims in (("raises", raised), ("has in the trace", shown))
        for bound, source in claims
        if source not in EXACT_ROWS and not bound <= most
    ]


def _far(points: list[Point]) -> Point | None:
    """The best of those that are surely worse than the best."""
    if not points:
        return None
    best = points[0].worth
    worse = [point for point in points if point.worth > best + WORSE * (1.0 + abs(best))]
    return worse[0] if worse else None


def _with_result(case: Case, points: list[Point], result: dt.Result, room: float) -> list[Point]:
    """What the solve found counts too, if it is what it should be."""
    if result.x is None or case.missed(result.x[None])[0] > max(room, EXACT):
        return points
    again = case.problem.predict(result.x)
    if not np.array_equal(again, result.x):
        return points
    found = Point(result.x, float(case.worth(result.x[None])[0]))
    return sorted([*points, found], key=lambda point: point.worth)


def faults(
    heard: Heard, points: list[Point], sign: float, *, deaf: bool = False, room: float = 0.0
) -> list[str]:
    """Claims that a verified point contradicts by more than `room`, in units of the objective."""
    result = heard.result
    assert result is not None
    said = []
    if result.status in ("error", "unbounded"):
        said.append(f"status {result.status}: {result.message}")
    if not points:
        return said
    if result.status == "infeasible":
        said.append(f"called infeasible, but {points[0].worth} is attained")
    best = points[0].worth
    most = best + RELATIVE * abs(best) + ABSOLUTE + room
    if max(heard.bounds, default=-np.inf) > most or np.isnan(heard.bounds).any():
        said.append(f"a bound of {max(heard.bounds)} is raised, but {best} is attained")
    if any(bound > most for bound, _ in heard.lines):
        said.append(f"the trace shows {max(bound for bound, _ in heard.lines)}, but {best} is attained")
    if any(bound > worth + RELATIVE * abs(worth) + ABSOLUTE for bound, worth in heard.lines):
        said.append("a line of the trace has a bound beyond its own incumbent")
    if result.bound is not None and sign * result.bound > most:
        said.append(f"the result's bound is {result.bound}, but {sign * best} is attained")
    if deaf and result.status == "optimal" and sign * (result.objective or 0.0) > most:
        said.append(f"{result.objective} is called optimal, but {sign * best} is attained")
    return said


__all__ = ["ACCEPTED", "EXACT", "Count", "Heard", "every_round", "faults", "judge", "listen"]

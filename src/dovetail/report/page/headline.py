"""The first thing that is read: what came of it, in a sentence and four figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dovetail.core.words import several
from dovetail.report.gains import ENDED, found_by, gap_text, proved_by
from dovetail.report.page.course import Course
from dovetail.report.page.number_text import number, seconds, visible

STATUS = {
    "optimal": "Optimal",
    "feasible": "Best point found",
    "infeasible": "Infeasible",
    "unbounded": "Unbounded",
    "no_solution": "No solution found",
    "error": "Ended by an error",
}
"""Statuses as a heading."""


@dataclass(frozen=True)
class Tile:
    """One figure, and what it is."""

    figure: str
    words: str


@dataclass(frozen=True)
class Headline:
    """Heading, the line below it, and the figures."""

    title: str
    subtitle: str
    tone: str
    """"good", "fair" or "bad": the colour of the status."""
    status: str
    tiles: list[Tile]


def headline(result: Any, course: Course) -> Headline:
    """Of one result."""
    status, reason = result.status.value, result.stop_reason.value
    title = STATUS[status]
    if result.objective is not None:
        title = f"{title}: {number(result.objective)}"
    tone = {"optimal": "good", "feasible": "fair"}.get(status, "bad")
    subtitle = f"{visible(result.method)}, ended {ENDED[reason]} after {seconds(result.seconds)}"
    tiles = [_verified(result), _bound(result), _work(result, course)]
    if result.objective is not None:
        tiles.insert(0, _objective(result))
    return Headline(title, subtitle, tone, status.replace("_", " "), tiles)


def _objective(result: Any) -> Tile:
    sense = {"min": "objective, minimised", "max": "objective, maximised"}
    words = sense.get("" if result.facts is None else result.facts.sense, "objective")
    return Tile(number(result.objective), words)


def _bound(result: Any) -> Tile:
    if result.bound is not None and result.bound_error is not None:
        said = f"about {number(result.bound)} (standard error {number(result.bound_error)})"
        return Tile("not proved", f"a sample of the blocks says that no point is beyond {said}")
    if result.bound is None:
        return Tile("no bound", "how much better it could be is not known")
    by = f" ({visible(proved_by(result.bound_source))})" if result.bound_source else ""
    if result.status.value == "optimal":
        said = "proved" if result.bound_kind.value == "proven" else "an engine's word"
        within = f", within {gap_text(result.gap)}" if result.gap else ""
        return Tile(f"{said}{within}", f"bound {number(result.bound)}{by}")
    if result.gap is None:
        return Tile(number(result.bound), f"bound on every point{by}")
    if result.rows_only:
        return Tile("not proved", f"no bound sees the networks; rows alone allow {number(result.bound)}")
    return Tile(f"{gap_text(result.gap)} gap", f"bound {number(result.bound)}{by}")


def _verified(result: Any) -> Tile:
    if result.violation is None:
        return Tile("no point", "no candidate passed the check")
    if result.violation.within():
        return Tile("verified", "rows, bounds, integers, and the predictors as you deploy them")
    return Tile("not verified", visible(f"misses {result.violation.missed}"))


def _work(result: Any, course: Course) -> Tile:
    words = several(result.iterations, "iteration")
    if result.evaluations:
        words += f", {several(result.evaluations, 'network evaluation')}"
    if course.points:
        last = course.points[-1]
        words += f"; last gain at {seconds(last.seconds)} by {visible(found_by(last.source))}"
    return Tile(seconds(result.seconds), words)

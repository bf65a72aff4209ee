"""The last lines of the log: what came of a solve, how far it is checked, and what to try next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dovetail.core.amounts import several
from dovetail.core.extrapolation import nearly_inside, notable
from dovetail.core.mip import TOLERANCE
from dovetail.report.gains import gap_text
from dovetail.report.log.layout import LABEL, fact, wrapped
from dovetail.report.sources import ENDED, found_by, proved_by

Result = Any
"""A `dovetail.Result`. It knows its log, so the log does not know its class."""

CHECKS = {
    "rows": "rows",
    "bounds": "bounds",
    "integrality": "integers",
    "prediction": "outputs are the predictor's",
}
"""The kinds of violation that decide, in words."""

REPORTS = {"precision": "away from its float64 copy", "rounding": "a row that other rounding may miss"}
"""Those that are reports, not failures."""


def ending(result: Result, width: int, passed: str = "\u2713", missed: str = "\u2717") -> Iterator[str]:
    """What came of it; `passed` and `missed` mark the checks."""
    yield ""
    meaning, *details = result.message.split("; ")
    yield from fact("status", f"{result.status.value}: {meaning}", width)
    in_full = result.x is None or result.status.value == "unbounded" or result.stop_reason.value == "error"
    for detail in details if in_full else ():
        yield from wrapped(detail, width, " " * LABEL, " " * LABEL)
    ended = ENDED[result.stop_reason.value]
    yield from fact("ended", f"{ended}, after {result.seconds:.1f} s", width)
    if result.objective is not None:
        yield from fact("objective", f"{result.objective:.10g}", width)
    yield from _bound(result, width)
    if result.x is not None:
        yield from fact("found by", _finder(result), width)
        yield from _checks(result, width, passed, missed)
    yield from _effort(result, width)
    for failure in () if in_full else result.failures:  # else the message names them
        yield from fact("failed", f"{failure}: the solve went on without it", width)
    for number, hint in enumerate(result.hints):
        yield from wrapped(hint, width, f"{'try next' if number == 0 else '':<{LABEL}}- ", " " * (LABEL + 2))


def _bound(result: Result, width: int) -> Iterator[str]:
    if result.bound is None:
        yield from fact("bound", "none", width)
        return
    by = f" ({proved_by(result.bound_source)})" if result.bound_source and not _no_network(result) else ""
    far = "" if result.bound_error is None else f", an estimate with standard error {result.bound_error:.3g}"
    if result.gap is not None and not result.rows_only:
        far += f", gap {gap_text(result.gap)}"
    yield from fact("bound", f"{result.bound:.10g}{far}{by}", width)


def _no_network(result: Result) -> bool:
    """Whether the problem has rows but no predictor."""
    return result.facts is not None and not result.facts.blocks


def _finder(result: Result) -> str:
    words = "the rows alone" if _no_network(result) else found_by(result.source)
    if not result.trace.incumbents:
        return words
    last = result.trace.incumbents[-1]
    rows = (row for row in result.trace.rows if row.source == result.source and row.elapsed >= last.seconds)
    part = next((row.part for row in rows), "")
    where = f"{part}: " if part and part not in words else ""
    return f"{where}{words}, after {last.seconds:.1f} s"


def _checks(result: Result, width: int, passed: str, missed: str) -> Iterator[str]:
    violation = result.violation
    if violation is None:
        return
    checks = {
        kind: words for kind, words in CHECKS.items() if kind != "prediction" or not _no_network(result)
    }
    for place, (kind, words) in enumerate(checks.items()):
        worst = getattr(violation, kind)
        mark = passed if worst.amount <= TOLERANCE else missed
        by = "" if worst.amount == 0.0 else f" ({worst.amount:.1e})"
        yield from fact("checks" if place == 0 else "", f"{mark} {words}{by}", width)
    for kind, words in REPORTS.items():
        worst = getattr(violation, kind)
        if not worst.amount <= TOLERANCE:  # NaN: it could not be measured
            yield from fact("", f"note: {words}: {worst}", width)
    outside = notable(result.extrapolations)
    if outside:
        amount = several(len(outside), "input")
        yield from fact("", f"note: {amount} outside the training data; farthest: {outside[0]}", width)
    near = nearly_inside(result.extrapolations)
    if near:
        amount = several(len(near), "input")
        yield from fact("", f"note: {amount} up to 1 % of a range outside the training data", width)


def _effort(result: Result, width: int) -> Iterator[str]:
    shares = result.profile.shares().items()
    told = ", ".join(f"{name} {100 * part:.0f} %" for name, part in shares if part >= 0.005)
    yield from fact("time", f"{result.seconds:.2f} s: {told}" if told else f"{result.seconds:.2f} s", width)
    yield from fact(
        "work",
        f"{several(result.iterations, 'iteration')}, {several(result.work.nodes, 'node')}, "
        f"{several(result.work.lps, 'LP')}, {several(result.evaluations, 'network evaluation')}",
        width,
    )

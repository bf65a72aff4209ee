"""The header of the log with its legend, and the summary at the end."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.block import Block
from dovetail.core.extrapolation import nearly_inside, notable
from dovetail.core.mip import TOLERANCE
from dovetail.core.problem import Problem
from dovetail.core.stated_program import StatedProgram
from dovetail.core.words import several
from dovetail.report.gains import ENDED, found_by, gap_text, proved_by
from dovetail.report.log.table import LABEL, fact, wrapped

MOST_BLOCKS = 8
"""Largest number of blocks with a line of their own; further blocks are counted."""


def heading(problem: Problem, title: str, width: int) -> Iterator[str]:
    """The header: the problem that is solved."""
    yield from wrapped(title, width, "", "  ")
    yield from fact("problem", _host(problem.stated), width)
    yield from fact("sizes", _sizes(problem.stated), width)
    if not problem.blocks:
        yield from fact("network", "none", width)
    for block in problem.blocks[:MOST_BLOCKS]:
        yield from fact("network", _block(block), width)
    if len(problem.blocks) > MOST_BLOCKS:
        yield from fact("", f"and {several(len(problem.blocks) - MOST_BLOCKS, 'other')}", width)


def _host(program: StatedProgram) -> str:
    integers = sum(
        int(np.broadcast_to(part.integer, part.shape).sum()) for part in program.columns if part.whole
    )
    return (
        f"{'minimise' if program.sense == 'min' else 'maximise'}; {several(program.n_rows, 'constraint')}, "
        f"{several(program.n_columns, 'variable')} ({integers:,} integer), "
        f"{several(program.nonzeros, 'nonzero')}"
    )


def _sizes(program: StatedProgram) -> str:
    """The ranges of the coefficients: engines have trouble with very different sizes."""
    cost = [part.cost for part in program.columns]
    entries = [entry for part in program.rows for entry in part.entries()]
    limits = [limit for part in program.columns for limit in (part.lower, part.upper)]
    sides = [program.row_lower, program.row_upper]
    return (
        f"costs {_span(cost)}, matrix {_span(entries)}, bounds {_span(limits)}, "
        f"right-hand sides {_span(sides)}"
    )


def _span(arrays: list[FloatArray]) -> str:
    found = []
    for values in arrays:
        sizes = np.abs(values[np.isfinite(values) & (values != 0)])
        if sizes.size:
            found += [float(sizes.min()), float(sizes.max())]
    if not found:
        return "none"
    least, most = f"{min(found):.0e}", f"{max(found):.0e}"
    return least if least == most else f"{least} to {most}"


def _block(block: Block) -> str:
    kind = "values"
    if block.classifies:
        one = block.outputs.shape[1] == 1
        kind = f"class 1 where >= {block.threshold:g}" if one else "class of the largest value"
    return (
        f"{block.name}: {block.description.name}; {several(block.samples, 'sample')}, "
        f"{several(block.inputs.shape[1], 'input')} -> {several(block.outputs.shape[1], 'output')}, {kind}"
    )


def legend(*, residuals: bool, width: int) -> Iterator[str]:
    """An explanation of the table."""
    words = [
        "a line is printed when the best verified solution (incumbent) or the proven bound improves",
        "MIP only: a bound that ignores the predictors",
        "evaluations: samples evaluated by the predictors",
        "--: a part begins or ends (with the seconds that it worked)",
    ]
    if residuals:
        words[0] = "a line for each round, at most one a second after the first 20"
        words[3] = "residual: distance of copies and variables; rho: the penalty; *: a MIP step at its limit"
    yield from fact("legend", "; ".join(words), width)
    yield ""


Result = Any
"""A `dovetail.Result`; the type is not imported, because the result imports the log."""

CHECKS = {
    "rows": "constraints",
    "bounds": "bounds",
    "integrality": "integers",
    "prediction": "predictions",
}
"""The violations that decide whether a solution passes, in words."""

REPORTS = {
    "precision": "difference from the float64 copy",
    "rounding": "another order of sums may violate a constraint",
}
"""Violations that are reported, not failures, in words."""


def ending(result: Result, width: int, passed: str = "\u2713", missed: str = "\u2717") -> Iterator[str]:
    """The summary; `passed` and `missed` mark the checks."""
    yield ""
    in_full = result.x is None or result.status.value == "unbounded" or result.stop_reason.value == "error"
    if result.objective is not None:
        yield from fact("objective", f"{result.objective:.10g}", width)
    yield from _bound(result, width)
    if result.x is not None:
        yield from fact("found by", _found_by(result), width)
        yield from _checks(result, width, passed, missed)
        yield from _held_back(result, width)
    yield from _effort(result, width)
    for failure in () if in_full else result.failures:  # otherwise the message names them
        yield from fact("failed", f"{failure}: the solve continued without it", width)
    meaning, *details = result.message.split("; ")
    ended = f"{ENDED[result.stop_reason.value]}, after {result.seconds:.1f} s"
    yield from fact("ended", ended, width)
    if not meaning.startswith(result.status.value):
        meaning = f"{result.status.value}: {meaning}"
    yield from fact("status", meaning, width)
    for detail in details if in_full else ():
        yield from wrapped(detail, width, " " * LABEL, " " * LABEL)
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
    """Whether the problem has no predictor."""
    return result.facts is not None and not result.facts.blocks


def _found_by(result: Result) -> str:
    words = "the MIP" if _no_network(result) else found_by(result.source)
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
    told = []
    for kind, words in checks.items():
        worst = getattr(violation, kind)
        mark = passed if worst.amount <= TOLERANCE else missed
        told.append(f"{mark} {words}" + ("" if worst.amount == 0.0 else f" ({worst.amount:.1e})"))
    yield from fact("checks", ", ".join(told), width)
    for kind, words in REPORTS.items():
        worst = getattr(violation, kind)
        if not worst.amount <= TOLERANCE:  # NaN: the amount could not be measured
            yield from fact("", f"note: {words}: {worst}", width)
    outside = notable(result.extrapolations)
    if outside:
        amount = several(len(outside), "input")
        yield from fact("", f"note: {amount} outside the training data; farthest: {outside[0]}", width)
    near = nearly_inside(result.extrapolations)
    if near:
        amount = several(len(near), "input")
        yield from fact("", f"note: {amount} outside the training data by at most 1 % of the range", width)


HARDEST = 3
"""Number of constraints that the log names."""


def _held_back(result: Result, width: int) -> Iterator[str]:
    """The constraints whose limits are worth most."""
    table = result.constraint_table
    told = [f"{c.name} ({c.price:+.4g} per unit)" for c in map(table.__getitem__, table.hardest[:HARDEST])]
    if told:
        yield from fact("binding", ", ".join(told), width)


def _effort(result: Result, width: int) -> Iterator[str]:
    told = ", ".join(f"{name} {share} %" for name, share in _percentages(result.profile.shares()) if share)
    yield from fact("time", f"{result.seconds:.2f} s: {told}" if told else f"{result.seconds:.2f} s", width)
    yield from fact(
        "work",
        f"{several(result.iterations, 'iteration')}, {several(result.work.nodes, 'node')}, "
        f"{several(result.work.lps, 'LP')}, {several(result.evaluations, 'network evaluation')}",
        width,
    )


def _percentages(shares: dict[str, float]) -> list[tuple[str, int]]:
    """Whole percentages that add up to 100: the largest remainders are rounded up."""
    exact = [100.0 * share for share in shares.values()]
    whole = [math.floor(share) for share in exact]
    up = sorted(range(len(whole)), key=lambda k: whole[k] - exact[k])
    for k in up[: round(sum(exact)) - sum(whole)]:
        whole[k] += 1
    return [("other" if name == "rest" else name, share) for name, share in zip(shares, whole, strict=True)]

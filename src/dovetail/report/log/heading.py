"""The first lines of the log: what is solved, what will be done, and how to read the rows that follow."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dovetail.core.amounts import several
from dovetail.core.arrays import FloatArray
from dovetail.core.block import Block
from dovetail.core.problem import Problem
from dovetail.core.stated_program import StatedProgram
from dovetail.report.log.layout import fact, wrapped

MOST_BLOCKS = 8
"""Blocks with a line of their own: of more, the first ones and a count."""


def heading(problem: Problem, title: str, width: int) -> Iterator[str]:
    """What is about to be solved."""
    yield from wrapped(title, width, "", "  ")
    yield from fact("problem", _host(problem.stated), width)
    yield from fact("sizes", _sizes(problem.stated), width)
    if not problem.blocks:
        yield from fact("network", "none: rows alone", width)
    for block in problem.blocks[:MOST_BLOCKS]:
        yield from fact("network", _block(block), width)
    if len(problem.blocks) > MOST_BLOCKS:
        yield from fact("", f"and {several(len(problem.blocks) - MOST_BLOCKS, 'other')}", width)


def _host(program: StatedProgram) -> str:
    integers = sum(
        int(np.broadcast_to(part.integer, part.shape).sum()) for part in program.columns if part.whole
    )
    return (
        f"{'minimise' if program.sense == 'min' else 'maximise'}; {several(program.n_rows, 'row')}, "
        f"{several(program.n_columns, 'column')} ({integers:,} integer), "
        f"{several(program.nonzeros, 'nonzero')}"
    )


def _sizes(program: StatedProgram) -> str:
    """The ranges of the numbers: where they lie far apart, engines have trouble."""
    cost = [part.cost for part in program.columns]
    entries = [entry for part in program.rows for entry in part.entries()]
    limits = [limit for part in program.columns for limit in (part.lower, part.upper)]
    sides = [program.row_lower, program.row_upper]
    return f"cost {_span(cost)}, matrix {_span(entries)}, bounds {_span(limits)}, sides {_span(sides)}"


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
    """How to read the rows."""
    words = [
        "a line is printed when the best verified solution (incumbent) or the proven bound improves",
        "rows only: a bound that has not seen the networks",
        "evaluations: samples that predictors were asked about",
        "--: a part begins, or ends after so many seconds",
    ]
    if residuals:
        words[0] = "a row for each round, at most one a second after the first 20"
        words[3] = "residual: how far the blocks are apart; rho: the penalty; *: a MIP step at its limit"
    yield from fact("legend", "; ".join(words), width)
    yield ""

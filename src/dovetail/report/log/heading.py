"""The first lines of the log: what is solved, what will be done, and how to read the rows that follow."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dovetail.core.amounts import several
from dovetail.core.block import Block
from dovetail.core.mip import Mip
from dovetail.core.problem import Problem
from dovetail.report.log.layout import fact, wrapped

MOST_BLOCKS = 8
"""Blocks with a line of their own: of more, the first ones and a count."""


def heading(problem: Problem, title: str, width: int) -> Iterator[str]:
    """What is about to be solved."""
    yield from wrapped(title, width, "", "  ")
    yield from fact("problem", _host(problem.mip), width)
    yield from fact("sizes", _sizes(problem.mip), width)
    for block in problem.blocks[:MOST_BLOCKS]:
        yield from fact("network", _block(block), width)
    if len(problem.blocks) > MOST_BLOCKS:
        yield from fact("", f"and {several(len(problem.blocks) - MOST_BLOCKS, 'other')}", width)


def _host(mip: Mip) -> str:
    return (
        f"{'minimise' if mip.sense == 'min' else 'maximise'}; {several(mip.n_rows, 'row')}, "
        f"{several(mip.n_columns, 'column')} ({int(mip.integer.sum()):,} integer), "
        f"{several(mip.A.nnz, 'nonzero')}"
    )


def _sizes(mip: Mip) -> str:
    """The ranges of the numbers: where they lie far apart, engines have trouble."""
    limits = np.concatenate([mip.lower, mip.upper])
    sides = np.concatenate([mip.row_lower, mip.row_upper])
    return f"cost {_span(mip.cost)}, matrix {_span(mip.A.data)}, bounds {_span(limits)}, sides {_span(sides)}"


def _span(values: np.ndarray) -> str:
    sizes = np.abs(values[np.isfinite(values) & (values != 0)])
    if not sizes.size:
        return "none"
    least, most = f"{sizes.min():.0e}", f"{sizes.max():.0e}"
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
        "rows come where the best verified point (incumbent) or the proven bound changes, else seldom",
        "rows only: a bound that has not seen the networks",
        "evaluations: samples that predictors were asked about",
        "--: a part begins, or ends after so many seconds",
    ]
    if residuals:
        words[0] = "a row for each round, at most one a second after the first 20"
        words[3] = "residual: how far the blocks are apart; rho: the penalty; *: a MIP step at its limit"
    yield from fact("legend", "; ".join(words), width)
    yield ""

"""The first and the last lines of a solve's log: text only, whoever prints it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dovetail.core.problem import Problem


def opening(problem: Problem, title: str) -> Iterator[str]:
    """What is about to be solved."""
    mip = problem.mip
    yield title
    yield (
        f"  host: {'minimise' if mip.sense == 'min' else 'maximise'}, {mip.n_rows} rows, "
        f"{mip.n_columns} columns ({int(mip.integer.sum())} integer), {mip.A.nnz} nonzeros; "
        f"{_ranges(problem)}"
    )
    for block in problem.blocks:
        kind = "regression"
        if block.classifies:
            one = block.outputs.shape[1] == 1
            kind = f"class 1 where >= {block.threshold:g}" if one else "class by largest value"
        yield (
            f"  {block.name}: {block.description.name}, {block.samples} samples, "
            f"{block.inputs.shape[1]} inputs -> {block.outputs.shape[1]} outputs, {kind}"
        )


def _ranges(problem: Problem) -> str:
    mip = problem.mip

    def span(values: np.ndarray) -> str:
        sizes = np.abs(values[np.isfinite(values) & (values != 0)])
        return f"[{sizes.min():.0e}, {sizes.max():.0e}]" if sizes.size else "none"

    limits = np.concatenate([mip.lower, mip.upper])
    sides = np.concatenate([mip.row_lower, mip.row_upper])
    return (
        f"sizes: cost {span(mip.cost)}, matrix {span(mip.A.data)}, bounds {span(limits)}, sides {span(sides)}"
    )


def closing(result: Any) -> Iterator[str]:
    """What came of a `dovetail.Result`, and where the time went."""
    yield ""
    yield f"status     {result.status.value} (stopped: {result.stop_reason.value}); {result.message}"
    if result.objective is not None:
        bound = "none" if result.bound is None else f"{result.bound:.8g} ({result.bound_kind.value})"
        gap = "" if result.gap is None else f", gap {100 * result.gap:.3g} %"
        yield f"objective  {result.objective:.8g}, bound {bound}{gap}"
    if result.violation is not None:
        kinds = ("rows", "bounds", "integrality", "prediction", "precision", "rounding")
        yield ("checked    " + ", ".join(f"{k} {getattr(result.violation, k).amount:.1e}" for k in kinds))
    if result.extrapolations:
        yield (
            f"outside    the training data: {len(result.extrapolations)} inputs; "
            f"farthest: {result.extrapolations[0]}"
        )
    shares = ", ".join(f"{name} {100 * part:.0f} %" for name, part in result.profile.shares().items())
    yield f"time       {result.seconds:.2f} s, {result.iterations} iterations: {shares}"

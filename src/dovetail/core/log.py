"""The first and the last lines of a solve's log."""

from __future__ import annotations

import numpy as np

from dovetail.core.problem import Problem
from dovetail.core.result import Result
from dovetail.core.watch import Watch


def announce(watch: Watch, problem: Problem, title: str) -> None:
    """What is about to be solved."""
    mip = problem.mip
    watch.say(title)
    watch.say(
        f"  host: {'minimise' if mip.sense == 'min' else 'maximise'}, {mip.rows} rows, {mip.columns} columns "
        f"({int(mip.integer.sum())} integer), {mip.A.nnz} nonzeros; {_ranges(problem)}"
    )
    for block in problem.blocks:
        kind = "regression"
        if block.classifies:
            one = block.outputs.shape[1] == 1
            kind = f"class 1 where >= {block.threshold:g}" if one else "class by largest value"
        watch.say(
            f"  {block.name}: {block.predictor.name}, {block.samples} samples, "
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


def conclude(watch: Watch, result: Result) -> None:
    """What came of it, and where the time went."""
    watch.close()
    watch.say()
    watch.say(f"status     {result.status.value} (stopped: {result.stop_reason.value}); {result.message}")
    if result.objective is not None:
        bound = "none" if result.bound is None else f"{result.bound:.8g} ({result.bound_kind.value})"
        gap = "" if result.gap is None else f", gap {100 * result.gap:.3g} %"
        watch.say(f"objective  {result.objective:.8g}, bound {bound}{gap}")
    if result.violation is not None:
        kinds = ("rows", "bounds", "integrality", "prediction", "precision", "rounding")
        watch.say("checked    " + ", ".join(f"{k} {getattr(result.violation, k).amount:.1e}" for k in kinds))
    if result.outside:
        watch.say(
            f"outside    the training data: {len(result.outside)} inputs; farthest: {result.outside[0]}"
        )
    shares = ", ".join(f"{name} {100 * part:.0f} %" for name, part in result.profile.shares().items())
    watch.say(f"time       {result.seconds:.2f} s, {result.iterations} iterations: {shares}")

"""Limits on probabilities become rows on their logits.

    p = sigmoid(z),  p >= 0.9                 becomes   z >= log(0.9 / 0.1)
    (p_0, p_1) = softmax(z_0, z_1)            likewise, of z_1 - z_0

A sigmoid rises strictly, so the limits are equivalent, and the rest of the network is dense layers and ReLUs:
it can be written out, branched over and proved, which a sigmoid at its end would prevent. Descents improve
too: where a probability is nearly 0 or 1 its gradient vanishes, but not that of its logit.

The network that gives the logits is a float64 copy, the probability that counts is the deployed network's.
The rows for a bound allow for every difference between the two: the check's tolerance on p, and the largest
rounding of the deployed network and of the copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from torch import nn

from dovetail.core.arrays import BoolArray, FloatArray
from dovetail.core.block import Block
from dovetail.core.class_rounding import block_slack
from dovetail.core.linear import as_linear
from dovetail.core.mip import TOLERANCE, Mip
from dovetail.core.probe import computes
from dovetail.core.problem import Problem
from dovetail.core.sparse import row_of_entries
from dovetail.core.words import several
from dovetail.networks.arithmetic import FLOAT64
from dovetail.networks.functions import LAYERS
from dovetail.networks.layers import Activation, Dense, Layer, evaluate, program_of
from dovetail.reformulations.reformulated import FillColumns, Reformulated
from dovetail.reformulations.writer import Writer

INSIDE = 5e-9
"""Distance of points inside the tolerance on p, because an LP may violate a row slightly."""
SCALE = 64.0
"""The unit of logits, so that the tolerance on their rows is small for p; a power of two, which does not
round."""
OUTWARD = 1e-12
"""Relative: above the rounding of the logarithm in a limit."""
P_ROUNDING = 4.0 * float(np.finfo(float).eps)
"""The rounding of limits on p before their logarithm; near 1 it is a large part of a logit."""
NEVER_LIMITS = -1.0, 2.0
"""Bounds of probabilities that no block writes any more; finite, for methods that need a box."""


Limits = tuple[FloatArray, FloatArray]
"""Lower and upper."""


def may_have_logits(problem: Problem) -> bool:
    """Whether a block may have limited probabilities, judged without its layers."""
    if problem.templates:
        return False
    asked = _ColumnLimits.of(problem)
    return any(asked.only_limits(block) for block in problem.blocks)


@dataclass(frozen=True)
class LogitRows:
    """Replaces limits on probabilities by limits on their logits."""

    name = "logit rows"

    def apply(self, given: Reformulated) -> Reformulated | None:
        """The problem with logits as new columns; probabilities stay without limits."""
        asked = _ColumnLimits.of(given.problem)
        parts = [part for block in given.problem.blocks if (part := _part(given, asked, block)) is not None]
        if not parts:
            return None
        relaxed = _with_logit_rows(given, parts, [part.for_bounds for part in parts])
        points = _with_logit_rows(given, parts, [part.for_points for part in parts])
        count = sum(part.block.outputs.size for part in parts)
        note = f"{several(count, 'probability', 'probabilities')}, limited by constraints on their logits"
        return replace(points, relaxed=relaxed, note=note)


@dataclass(frozen=True, eq=False)
class _ColumnLimits:
    """The limits of each column from bounds and from rows with a single column."""

    lower: FloatArray
    upper: FloatArray
    accepted_lower: FloatArray
    accepted_upper: FloatArray
    """The same, relaxed by the tolerance of the check, divided by the coefficient for rows."""
    alone: BoolArray
    """Whether nothing else uses the column: no cost, no other row, no network, no integrality."""

    @classmethod
    def of(cls, problem: Problem) -> _ColumnLimits:
        mip, A = problem.mip, problem.mip.A
        sizes = np.diff(A.indptr)
        alone = ~mip.integer & (mip.cost == 0.0)
        alone[A.indices[np.repeat(sizes > 1, sizes)]] = False
        alone[problem.inputs] = False
        rows = np.flatnonzero(sizes == 1)
        columns, factors = A.indices[A.indptr[rows]], A.data[A.indptr[rows]]
        rows, columns, factors = (part[factors != 0.0] for part in (rows, columns, factors))
        ends = np.sort([mip.row_lower[rows] / factors, mip.row_upper[rows] / factors], axis=0)

        def limits(room: float) -> Limits:
            lower, upper = mip.lower - room, mip.upper + room
            np.maximum.at(lower, columns, ends[0] - room / np.abs(factors))
            np.minimum.at(upper, columns, ends[1] + room / np.abs(factors))
            return lower, upper

        return cls(*limits(0.0), *limits(TOLERANCE), alone)

    def only_limits(self, block: Block) -> bool:
        """Whether an output of a block is only limited, in the range of probabilities."""
        at = block.outputs
        limited = (self.lower[at] > 0.0) | (self.upper[at] < 1.0)
        return not block.classifies and bool(np.all(self.alone[at])) and bool(np.any(limited))


@dataclass(frozen=True, eq=False)
class _LogitBlock:
    """One block with the layers of its logits and their limits, (n, logits)."""

    block: Block
    layers: tuple[Layer, ...]
    for_points: Limits
    for_bounds: Limits

    def fill(self, x: FloatArray) -> FloatArray:
        """The logits of all samples, one after the other."""
        return evaluate(self.layers, x[self.block.inputs]).ravel()


def _part(given: Reformulated, asked: _ColumnLimits, block: Block) -> _LogitBlock | None:
    """The new form of a block, or None if its logits or their rounding are not known."""
    if not asked.only_limits(block):
        return None
    known = block.description.layers_if_known()
    layers = None if known is None else _logit_layers(known, block.outputs.shape[1])
    if known is None or layers is None or not computes(given.problem.mip, block, known):
        return None
    low, high = given.box.lower[block.inputs], given.box.upper[block.inputs]
    if not np.all(np.isfinite(high - low)):
        return None
    slack = block_slack(block, low, high)
    copy_slack = program_of(layers, low.shape[1]).errors(FLOAT64, low, high)[2]
    if not (np.all(np.isfinite(slack)) and np.all(np.isfinite(copy_slack))):
        return None
    at = block.outputs
    lower, upper = asked.accepted_lower[at], asked.accepted_upper[at]
    inside = slack + INSIDE
    points = np.minimum(lower + inside, asked.lower[at]), np.maximum(upper - inside, asked.upper[at])
    pair = copy_slack.shape[1] < at.shape[1]
    points = _as_logits(*points, pair=pair)
    bounds = _as_logits(lower - slack - P_ROUNDING, upper + slack + P_ROUNDING, pair=pair)
    if np.any(bounds[0] == np.inf) or np.any(bounds[1] == -np.inf):
        return None  # beyond 0 or 1, which whoever proves the problem infeasible may find out
    loose = bounds[0] - copy_slack - _rounding(bounds[0]), bounds[1] + copy_slack + _rounding(bounds[1])
    return _LogitBlock(block, layers, points, loose)


def _logit_layers(layers: tuple[Layer, ...], outputs: int) -> tuple[Layer, ...] | None:
    """The layers before a sigmoid, or of the difference before a softmax of two; times `SCALE`."""
    last = layers[-1] if len(layers) > 1 else None
    if not isinstance(last, Activation):
        return None
    if last.kind == "sigmoid":
        behind = SCALE * np.eye(outputs)
    elif last.kind == "softmax" and outputs == 2:
        behind = SCALE * np.array([[-1.0, 1.0]])
    else:
        return None
    before = layers[-2]
    if isinstance(before, Dense):
        return (*layers[:-2], Dense(behind @ before.weight, behind @ before.bias))
    return (*layers[:-1], Dense(behind, np.zeros(len(behind))))


def _as_logits(lower: FloatArray, upper: FloatArray, *, pair: bool) -> Limits:
    """Limits on probabilities as limits on scaled logits; for two classes on the second."""
    low, high = _logit(lower), _logit(upper)
    if not pair:
        return low, high
    return np.maximum(low[:, 1:], -high[:, :1]), np.minimum(high[:, 1:], -low[:, :1])


def _logit(p: FloatArray) -> FloatArray:
    inside = np.clip(p, 0.0, 1.0)
    with np.errstate(divide="ignore"):
        return np.asarray(SCALE * (np.log(inside) - np.log1p(-inside)))


def _rounding(logits: FloatArray) -> FloatArray:
    """A bound on the rounding of `_logit` and its argument."""
    return OUTWARD * (1.0 + np.abs(np.where(np.isfinite(logits), logits, 0.0)))


def _with_logit_rows(
    given: Reformulated, parts: Sequence[_LogitBlock], sides: Sequence[Limits]
) -> Reformulated:
    """The problem with limits on its logits as rows, because bounds must be equal for both uses."""
    problem, mip = given.problem, given.problem.mip
    free = np.concatenate([part.block.outputs.ravel() for part in parts])
    slack = np.zeros(mip.n_columns)
    slack[free] = 1.0
    low, high = (np.concatenate([side[k].ravel() for side in sides]) for k in (0, 1))
    writer = Writer(mip.n_columns)
    endless = np.full(low.size, np.inf)
    for j, least, most in zip(writer.columns(-endless, endless), low, np.maximum(low, high), strict=True):
        writer.row([j], np.ones(1), least, most)
    host = writer.extend(_without_limits(mip, slack > 0.0))
    gone = {part.block.name for part in parts}
    kept = tuple(block for block in problem.blocks if block.name not in gone)
    written, first = problem.derived(host, kept), mip.n_columns
    for part, (side, _) in zip(parts, sides, strict=True):
        columns = np.arange(first, first + side.size).reshape(side.shape)
        written.add_predictor(
            _network(part.layers), part.block.inputs, columns, name=f"{part.block.name} logit"
        )
        first += side.size
    fills: tuple[FillColumns, ...] = tuple(part.fill for part in parts)
    return Reformulated(written, given, fills, slack=slack)


def _without_limits(mip: Mip, free: BoolArray) -> Mip:
    """The program without limits on some columns that only rows of their own limit."""
    rows = np.unique(row_of_entries(mip.A)[free[mip.A.indices]])
    row_lower, row_upper = mip.row_lower.copy(), mip.row_upper.copy()
    row_lower[rows], row_upper[rows] = -np.inf, np.inf
    lower = np.where(free, NEVER_LIMITS[0], mip.lower)
    upper = np.where(free, NEVER_LIMITS[1], mip.upper)
    return replace(mip, lower=lower, upper=upper, row_lower=row_lower, row_upper=row_upper)


def _network(layers: Sequence[Layer]) -> nn.Sequential:
    """Layers as a float64 network."""
    return nn.Sequential(
        *(
            getattr(nn, LAYERS[layer.kind].layer)()
            if isinstance(layer, Activation)
            else as_linear(layer.weight, layer.bias)
            for layer in layers
        )
    )

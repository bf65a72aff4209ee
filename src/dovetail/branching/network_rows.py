"""Rows that hold for one network each, found by branch and bound over its own inputs.

The LP of a box takes a network neuron by neuron, and is far from it where the box is wide. Over a network's
few inputs alone branch and bound soon knows more: what `m y - g x` is at least, for the prices m that the LP
puts on its outputs and the slopes g that it sees. That is a row of the host, and holds in every box. With
many networks it does what no tree over all of them could: their trees add up here, and multiply there.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from dovetail.branching.host import HostRows
from dovetail.branching.model import Model
from dovetail.branching.networks import NetworkSamples
from dovetail.branching.relaxation import Solved
from dovetail.branching.tree import Node, Tree
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.run.budget import Budget

BOXES = 64
"""Of one network's tree, at most: where that is not enough, the tree over all networks has more use for the
time (an ensemble on eight inputs)."""
ENOUGH = 0.05
"""Of the gap, all networks together: what their trees may leave open."""
LITTLE = 0.02
"""Of the gap: rounds that bring less are the last."""


class _Row(NamedTuple):
    """entries x[columns] >= least, of one sample of a network."""

    columns: IntArray
    entries: FloatArray
    least: float
    network: int
    sample: int


NOTHING = _Row(np.empty(0, dtype=np.int64), np.empty(0), 0.0, 0, 0)


def add_network_rows(tree: Tree, root: Node, goal: float, budget: Budget) -> None:
    """Rows of its networks to a tree, as long as they raise the bound of its first box."""
    made, before = tree.model, -math.inf
    first, rows = made.host.A.shape[0] - 1, list[_Row]()
    lower, upper = root.lower[None], root.upper[None]
    tree.use(made)  # an LP that begins with the basis of another one may end with prices that say less
    samples = sum(one.samples for one in made.networks)
    while samples > 1 and not budget.over:
        solved = tree.lp.solve(lower, upper, budget)[0]
        if solved.multipliers is None or solved.infeasible:
            break
        bound, _ = solved.multipliers.bound(tree.model.host, made.networks, lower, upper, goal)
        root.bound = max(root.bound, float(bound[0]))
        if root.bound >= goal or not root.bound - before > LITTLE * (goal - root.bound):
            break
        before, little = root.bound, ENOUGH * (goal - root.bound) / samples
        prices = solved.multipliers.rows[0, first : first + len(rows)]
        found = []
        for number, one in enumerate(made.networks):
            slopes, _ = one.below(solved.multipliers.networks[number], lower, upper)
            for sample in range(one.samples):
                weights = np.append(
                    -slopes[0, sample], solved.multipliers.networks[number].outputs[0, sample].numpy()
                )
                for old, price in zip(rows, prices, strict=True):
                    if (old.network, old.sample) == (number, sample):
                        weights = weights + price * old.entries
                row = _row(made, number, sample, root, solved, weights, little, budget)
                if row is None:
                    return
                found += [row] if row.columns.size else []
        if not found:
            break
        rows += found
        tree.use(replace(made, host=_more(made.host, rows)))


def _row(
    made: Model,
    number: int,
    sample: int,
    root: Node,
    solved: Solved,
    entries: FloatArray,
    little: float,
    budget: Budget,
) -> _Row | None:
    """What one sample of a network adds to the LP, which may be nothing; its tree may leave `little` open.

    None where its tree is too large.
    """
    assert solved.x is not None
    one = made.networks[number]
    wrong = sum(float(error[sample].sum()) for error in solved.errors[number].values())
    columns = np.append(one.inputs[sample], one.outputs[sample])
    if not wrong > 0.0 or not np.any(entries[one.inputs.shape[1] :]):
        return NOTHING
    sub, d = _alone(made, one, sample, root, entries), one.inputs.shape[1]
    best, x, tree = math.inf, solved.x[columns[:d]], Tree(sub, seed=0, threads=1, counted=False)
    while True:
        x = np.clip(x, sub.lower[:d], sub.upper[:d])
        best = min(best, float(entries @ np.append(x, one.vectors(x[None])[-1])))
        goal = best - little
        if not len(tree) or tree.boxes >= BOXES or budget.over or tree.bound(goal) >= goal:
            break
        points = tree.step(goal, budget)
        x = points[0][:d] if points else x
    least = tree.bound(goal)
    if least < goal and len(tree):
        return None
    gained = least - float(solved.x[columns] @ entries)
    return _Row(columns, entries, least, number, sample) if gained > little else NOTHING


def _alone(made: Model, one: NetworkSamples, sample: int, root: Node, cost: FloatArray) -> Model:
    """One sample of a network over its part of a box, with a cost of its own and no rows."""
    inputs, outputs = one.inputs[sample], one.outputs[sample]
    first, inner = inputs.size + outputs.size, {}
    taken = [inputs, outputs]
    for place, columns in one.inner.items():
        inner[place] = np.arange(first, first + columns.shape[1])[None]
        first += columns.shape[1]
        taken.append(columns[sample])
    own = np.arange(inputs.size + outputs.size)
    network = NetworkSamples(
        one.planes, own[None, : inputs.size], own[None, inputs.size :], one.slack[sample : sample + 1], inner
    )
    n = own.size
    host = HostRows(
        sp.csr_array((0, n)),
        np.empty(0),
        np.empty(0),
        cost,
        0.0,
        made.host.integer[np.append(inputs, outputs)],
        np.ones(n, int),
    ).with_cutoff()
    columns = np.concatenate(taken)
    return Model(host, (network,), root.lower[columns].copy(), root.upper[columns].copy(), n)


def _more(host: HostRows, rows: list[_Row]) -> HostRows:
    """With these rows before the last one, the cost's."""
    lengths = [row.columns.size for row in rows]
    more = sp.csr_array(
        (
            np.concatenate([row.entries for row in rows]),
            (np.repeat(np.arange(len(rows)), lengths), np.concatenate([row.columns for row in rows])),
        ),
        shape=(len(rows), host.columns),
    )
    more.eliminate_zeros()
    A = sp.vstack([host.A[:-1], more, host.A[-1:]], format="csr")
    return replace(
        host,
        A=A,
        row_lower=np.concatenate([host.row_lower[:-1], [row.least for row in rows], host.row_lower[-1:]]),
        row_upper=np.concatenate([host.row_upper[:-1], np.full(len(rows), np.inf), host.row_upper[-1:]]),
        entries=host.entries + np.bincount(more.indices, minlength=host.columns),
    )

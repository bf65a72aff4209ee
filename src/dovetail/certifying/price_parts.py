"""Parts of a certificate for components that rows tie together: at the rows' prices, by signs of neurons.

Branching over signs is run once more at the prices that the bound was proved at, all components in a batch,
and the nodes that it closes are the leaves of each component's tree; a class is split first. What is still
open when the time is over is a leaf as well, and proves less.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import numpy as np
import torch

from dovetail.certificates.proof import COST_ROW, Leaves, ProofPart, ProofTree
from dovetail.certifying.sign_leaves import SignLeaves, searched
from dovetail.certifying.sign_tree import region_of, tree_of
from dovetail.core.arrays import FloatArray
from dovetail.core.problem import Problem
from dovetail.methods.component_prices.coupled_problem import CoupledProblem, Priced
from dovetail.methods.component_prices.signs import kinds_of
from dovetail.methods.relu_branching.targets import is_relu_network
from dovetail.run.budget import Budget
from dovetail.structure.structure import Structure

TOLERANCE = 1e-3
"""Of a component, relative to what its cheaper class saves: a search ends when it is as near to a point."""
MOST_COMPONENTS = 1000
"""Beyond it a certificate is larger than is kept."""
BATCH = 1024


def price_parts(problem: Problem, row_prices: FloatArray, seconds: float) -> tuple[ProofPart, ...] | None:
    """At (rows,) multipliers of the rows that couple; None where components are not of this kind."""
    coupled = CoupledProblem.of(Structure(problem), "cpu")
    if coupled is None or not 2 <= coupled.parts.count <= MOST_COMPONENTS:
        return None
    if not all(is_relu_network(group.planes.graph) for group in coupled.groups):
        return None
    at, budget = coupled.at(coupled.sides.side_prices(row_prices)), Budget(seconds)
    with torch.inference_mode():
        made = [_parts(problem, group, budget) for group in at.parts]
    found = [parts for parts in made if parts is not None]
    return tuple(chain.from_iterable(found)) if len(found) == len(made) else None


def _parts(problem: Problem, group: Priced, budget: Budget) -> list[ProofPart] | None:
    """Of the components of a group, in their order."""
    alone = [_by_moves(problem, group, k) for k in range(len(group.other))]
    if group.targets is None:
        return alone
    first, like = kinds_of(group.targets)
    share = first.size / like.size  # alike components have the same leaves, each its own
    targets, tolerance = group.targets.take(torch.as_tensor(first)), TOLERANCE * group.worth
    found = searched(targets, tolerance, BATCH, budget, share=share)
    if found is None:
        return None
    leaves = [found.take(np.flatnonzero(found.target == kind)) for kind in range(first.size)]
    for place, k in enumerate(group.asked.tolist()):
        alone[k] = _by_signs(problem, group, k, alone[k], leaves[like[place]])
    return alone


def _by_moves(problem: Problem, group: Priced, k: int) -> ProofPart:
    """Component k without a look at its network."""
    one, block = group.group.parts[k], group.group.block
    columns, rows = np.union1d(one.members, block.inputs[one.sample]), np.sort(one.rows)
    leaf = Leaves(np.ones(1), np.zeros((1, rows.size)))
    none = np.zeros(0, dtype=np.int64)
    tree = ProofTree(none, np.zeros(0), none.reshape(0, 2), leaf)
    return ProofPart(columns, rows, tree, float(group.bounds()[k]), *region_of(problem, rows))


def _by_signs(problem: Problem, group: Priced, k: int, alone: ProofPart, leaves: SignLeaves) -> ProofPart:
    """The same with leaves of signs; what they do not make up a tree of stays as it was."""
    tree = tree_of(leaves, problem.mip.n_columns, alone.rows.size)
    if tree is None:
        return alone
    value, row = float(group.base[k] + leaves.bound.min()), alone.row
    block, sample = group.group.block, group.group.parts[k].sample
    if block.classifies:
        value, row = min(value, float(group.other[k])), row if row >= 0 else COST_ROW
        tree = _with_class(tree, int(block.outputs[sample][0]), leaves.price, int(group.first[k]))
    return replace(alone, tree=tree, value=value, row=row)


def _with_class(tree: ProofTree, column: int, price: FloatArray, of_class: int) -> ProofTree:
    """A tree of one class's points, beside a single leaf of the other's."""
    leaves, count = tree.leaves, len(tree.leaves)
    first = np.where(tree.children >= 0, tree.children + 1, tree.children)
    sides = [-1 - count, -1 - count]
    sides[of_class] = 1 if len(tree.variable) else -1
    return ProofTree(
        np.concatenate([[column], tree.variable]),
        np.concatenate([[0.5], tree.at]),
        np.concatenate([np.array([sides], dtype=np.int64), first]),
        Leaves(
            np.append(leaves.objective, 1.0),
            np.vstack([leaves.rows, np.zeros((1, leaves.rows.shape[1]))]),
            conditions=np.append(price if of_class else -price, 0.0)[:, None],
            slopes=np.vstack([leaves.slopes, np.full((1, leaves.slopes.shape[1]), np.nan)]),
            neurons=np.vstack([leaves.neurons, np.zeros((1, leaves.neurons.shape[1]))]),
        ),
    )

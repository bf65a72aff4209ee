"""A tree over signs of neurons, for one ReLU network over a ball or a box of many inputs.

Branching over signs is run once more, with the bound as its cutoff; its nodes, with the slopes and
multipliers that closed them, are the leaves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dovetail.branching.sign_nodes import Nodes
from dovetail.branching.sign_search import SearchOptions, SignSearch
from dovetail.branching.targets import Targets
from dovetail.certificates.proof import LARGEST_BYTES, Leaves, ProofTree
from dovetail.core.arrays import IntArray
from dovetail.core.problem import Problem
from dovetail.core.sparse import entries_of
from dovetail.methods.component_prices.coupled_problem import CoupledProblem
from dovetail.run.budget import Budget
from dovetail.structure.structure import Structure

MOST_NUMBERS = 1_200_000
"""Largest number of leaves times neurons: the checker takes half a millisecond for 32 of them."""
AT_ONCE = 4096
"""Number of leaves whose conditions are priced at a time."""


@dataclass(frozen=True, eq=False)
class SignLeaves:
    """L leaves."""

    nodes: Nodes
    price: Tensor
    """(L,) multipliers of the condition; 0 for targets without one."""
    condition: bool = False

    def of(self, target: int) -> SignLeaves:
        """The multipliers of one target."""
        mine = self.nodes.target == target
        return SignLeaves(self.nodes.take(mine), self.price[mine], self.condition)


def searched(
    targets: Targets,
    tolerance: float,
    batch: int,
    budget: Budget,
    aim: Tensor | None = None,
    share: float = 1.0,
) -> SignLeaves | None:
    """The leaves of all targets; `aim` (K,) are sufficient values; `share` is the largest fraction of
    leaves. None if they cannot be kept."""
    options = SearchOptions(batch=batch, tolerance=tolerance, record_bytes=LARGEST_BYTES, fresh=True)
    search = SignSearch(targets, options)
    if aim is not None:
        search.know(aim)
    most = share * MOST_NUMBERS / search.bounding.neurons.count
    search.run(budget, lambda search: search.kept > most)
    nodes = search.divided
    if nodes is None:
        return None
    every = torch.arange(len(nodes)).split(AT_ONCE)  # type: ignore[no-untyped-call]
    prices = [search.bounding.prices(nodes.take(some)) for some in every]
    return SignLeaves(nodes, torch.cat([nodes.bound[:0], *prices]), targets.condition)


@dataclass(frozen=True, eq=False)
class SignTree:
    """The tree, and facts about the part for the checker."""

    tree: ProofTree
    defined: IntArray
    row: int


def sign_tree(problem: Problem, target: float, seconds: float) -> SignTree | None:
    """The tree of a bound in minimisation form; None if the problem is not one such network."""
    structure = Structure(problem)
    if structure.samples != 1:
        return None
    whole = CoupledProblem.of(structure)
    if whole is None or whole.sides.count:
        return None
    priced = whole.at(np.empty(0))
    part = priced.parts[0]
    if part.targets is None or part.targets.condition:
        return None
    aim = torch.tensor([target - priced.constant - float(part.base[0])])
    with torch.inference_mode():
        leaves = searched(part.targets, 0.0, SearchOptions().batch, Budget(seconds), aim)
    tree = None if leaves is None else tree_of(leaves, problem.mip.n_columns, problem.mip.n_rows)
    return None if tree is None else SignTree(tree, *region_of(problem, np.arange(problem.mip.n_rows)))


def tree_of(found: SignLeaves, columns: int, rows: int) -> ProofTree | None:
    """The tree from the signs of all leaves of one target; None if they do not form a tree."""
    nodes, weight = found.nodes, found.price if found.condition else torch.ones_like(found.price)
    signs = nodes.sign.numpy().astype(float)
    variable: list[int] = []
    children: list[list[int]] = []
    waiting: list[tuple[IntArray, int, int]] = [(np.arange(len(signs)), -1, 0)]
    while waiting:
        which, parent, side = waiting.pop()
        number = -1 - int(which[0]) if which.size == 1 else len(variable)
        if parent >= 0:
            children[parent][side] = number
        if which.size == 1:
            continue
        here = signs[which]
        splits = np.flatnonzero((here != 0.0).all(axis=0) & (here.min(axis=0) < here.max(axis=0)))
        if splits.size == 0:
            return None
        neuron = int(splits[0])
        variable.append(columns + neuron)
        children.append([0, 0])
        waiting.append((which[here[:, neuron] < 0.0], number, 0))
        waiting.append((which[here[:, neuron] > 0.0], number, 1))
    leaves = Leaves(
        np.ones(len(signs)),
        np.zeros((len(signs), rows)),
        slopes=nodes.slope.numpy(),
        neurons=signs * (weight[:, None] * nodes.multiplier).numpy(),
    )
    made = np.array(children, dtype=np.int64).reshape(-1, 2)
    return ProofTree(np.array(variable, dtype=np.int64), np.zeros(len(variable)), made, leaves)


def region_of(problem: Problem, rows: IntArray) -> tuple[IntArray, int]:
    """Among some rows, the equations that define inputs, and the row that contains most of their columns,
    or -1."""
    mip = problem.mip
    reads = np.zeros(mip.n_columns, dtype=bool)
    reads[problem.inputs] = True
    written = np.zeros(mip.n_columns, dtype=bool)
    written[problem.outputs] = True
    defined: list[tuple[int, int]] = []
    taken = np.zeros(mip.n_columns, dtype=bool)
    for i in rows[mip.row_lower[rows] == mip.row_upper[rows]]:
        columns, entries = entries_of(mip.A, int(i))
        own = columns[reads[columns] | written[columns]]
        if own.size != 1 or columns.size == 1 or taken[own[0]] or not reads[own[0]]:
            continue
        if abs(entries[columns == own[0]][0]) == 1.0:
            defined.append((int(own[0]), int(i)))
            taken[own[0]] = True
    used = {row for _, row in defined}
    others = [int(i) for i in rows if i not in used and np.isfinite(mip.row_upper[i])]
    others = [i for i in others if not np.any(written[entries_of(mip.A, i)[0]])]
    widest = max(others, key=lambda i: entries_of(mip.A, i)[0].size, default=-1)
    return np.array(defined, dtype=np.int64).reshape(-1, 2), widest

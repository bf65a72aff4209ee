"""The paper's own cut: the networks have copies of *every* column that their rows touch.

    A_MIP x <= b_MIP          stays in the MIP
    A_NN [u; f(u)] <= b_NN    every row with an output in it goes with the networks, and u is a copy of
                              each other column of such a row, beside the networks' inputs

There is one copy of a column, however many networks read it, and one coupling u = x: what the
paper's theorem is about. Samples that share a column or a row take their step together: a *group*. Groups of
the same shape are a batch.

What the paper does not have keeps the form it has in `split`: outputs that feed another network or must be
whole stay in the MIP behind a second coupling, and so do classes whose rows touch more than themselves (a
class is 0 or 1: there is no gradient to meet such a row with).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import count

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from dovetail.core.arrays import BoolArray, IntArray
from dovetail.core.block import Block
from dovetail.core.errors import UnsupportedError
from dovetail.core.mip import Mip
from dovetail.core.problem import Problem
from dovetail.core.sparse import entries_of
from dovetail.coupling.split import (
    CoupledBatch,
    Member,
    SplitProblem,
    needs_columns,
    output_bounds,
    part_of,
    remaining,
    sample_row,
    sorted_rows,
)

MOST_ENTRIES = 100_000_000
"""Of the groups' rows, which network steps hold densely: 0.8 GB."""


def paper_split(problem: Problem) -> SplitProblem:
    """Cut the problem as the paper does."""
    mip = problem.mip.minimised()
    rows = sorted_rows(problem, mip)
    leaving, parts = [], []
    for b, block in enumerate(problem.blocks):
        if block.classifies or needs_columns(problem, mip, block):
            parts.append(part_of(problem, mip, b, rows))
        else:
            leaving.append(block)
    families: dict[tuple[object, ...], list[_SampleGroup]] = {}
    for group in _groups(mip, leaving):
        families.setdefault(group.shape, []).append(group)
    for groups in families.values():
        parts.append(_part(mip, leaving, groups, {part.name for part in parts}))
    return SplitProblem(remaining(mip, parts), tuple(parts))


@dataclass(frozen=True, eq=False)
class _SampleGroup:
    """Samples that take their network step together."""

    samples: tuple[tuple[int, int], ...]
    """(block, sample), sorted."""
    columns: tuple[int, ...]
    """What it has copies of: the samples' inputs, then what else their rows touch."""
    positions: tuple[tuple[int, ...], ...]
    """Sample by sample, where its inputs are among the copies."""
    rows: tuple[int, ...]

    @property
    def shape(self) -> tuple[object, ...]:
        """Groups of the same shape are a batch: the same blocks, reading the same places of the copies."""
        return tuple(b for b, _ in self.samples), self.positions, len(self.columns)


def _groups(mip: Mip, blocks: list[Block]) -> list[_SampleGroup]:
    """The samples of the blocks that leave, joined where they share a row or a column that can move."""
    nodes = [(b, i) for b, block in enumerate(blocks) for i in range(block.samples)]
    if not nodes:
        return []
    owner = np.full(mip.n_columns, -1)
    for node, (b, i) in enumerate(nodes):
        owner[blocks[b].outputs[i]] = node
    left = owner >= 0
    rows = np.flatnonzero(abs(mip.A) @ left.astype(float))
    others = {int(r): _touched(mip, int(r), ~left) for r in rows}
    label = _labels(mip, blocks, nodes, owner, others)
    members: dict[int, list[int]] = {}
    for node in range(len(nodes)):
        members.setdefault(int(label[node]), []).append(node)
    rows_of: dict[int, list[int]] = {}
    for r in others:
        first = next(int(j) for j in entries_of(mip.A, r)[0] if left[j])
        rows_of.setdefault(int(label[owner[first]]), []).append(r)
    found = []
    for key, mates in members.items():
        samples = tuple(nodes[node] for node in mates)
        mine = tuple(rows_of.get(key, ()))
        inputs = [blocks[b].inputs[i].tolist() for b, i in samples]
        columns = dict.fromkeys(j for own in (*inputs, *(others[r] for r in mine)) for j in own)
        place = {j: k for k, j in enumerate(columns)}
        positions = tuple(tuple(place[j] for j in own) for own in inputs)
        found.append(_SampleGroup(samples, tuple(columns), positions, mine))
    return found


def _labels(
    mip: Mip,
    blocks: list[Block],
    nodes: list[tuple[int, int]],
    owner: IntArray,
    others: dict[int, list[int]],
) -> IntArray:
    """The connected component of every sample; a column that cannot move joins nothing."""
    n, moves = len(nodes), mip.upper > mip.lower
    edges: list[tuple[int, int]] = []  # samples, then columns, then rows
    for node, (b, i) in enumerate(nodes):
        edges += [(node, n + int(j)) for j in blocks[b].inputs[i] if moves[j]]
    for place, (r, columns) in enumerate(others.items()):
        at = n + mip.n_columns + place
        outputs = _touched(mip, r, owner >= 0)
        edges += [(int(owner[j]), at) for j in outputs] + [(n + j, at) for j in columns if moves[j]]
    size = n + mip.n_columns + len(others)
    start, end = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    graph = sp.coo_array((np.ones(len(edges)), (start, end)), shape=(size, size))
    return np.asarray(connected_components(graph, directed=False)[1])


def _touched(mip: Mip, r: int, which: BoolArray) -> list[int]:
    """The columns of a row that are among these."""
    return [int(j) for j in entries_of(mip.A, r)[0] if which[j]]


def _part(mip: Mip, blocks: list[Block], groups: list[_SampleGroup], names: Collection[str]) -> CoupledBatch:
    """Groups of one shape as a batch."""
    first = groups[0]
    kinds = list(dict.fromkeys(b for b, _ in first.samples))
    outputs = np.array([[j for b, i in group.samples for j in blocks[b].outputs[i]] for group in groups])
    columns = np.array([group.columns for group in groups])
    most = max(len(group.rows) for group in groups) + outputs.shape[1]
    name = _unused("+".join(blocks[b].name for b in kinds), names)
    if columns.size * most > MOST_ENTRIES:
        raise UnsupportedError(
            f"{name}: {len(first.samples):,} samples share rows or columns, and their step would hold "
            f'{most:,} rows over {columns.shape[1]:,} copies densely; use copies="inputs".'
        )
    return CoupledBatch(
        name,
        tuple(Member(blocks[b], _positions(first, b)) for b in kinds),
        columns,
        outputs,
        couples_outputs=False,
        rows=tuple(
            (
                *(sample_row(mip, r, own, results) for r in group.rows),
                *output_bounds(mip, results, len(own)),
            )
            for group, own, results in zip(groups, columns, outputs, strict=True)
        ),
        classes=(None,) * len(groups),
        taken=tuple(r for group in groups for r in group.rows),
    )


def _unused(name: str, names: Collection[str]) -> str:
    """The name, with a number where other groups of the same blocks have it already."""
    numbered = (name if k == 1 else f"{name} #{k}" for k in count(1))
    return next(each for each in numbered if each not in names)


def _positions(group: _SampleGroup, b: int) -> IntArray:
    """Where, among its group's copies, the inputs of a block's samples are."""
    return np.array([own for own, (kind, _) in zip(group.positions, group.samples, strict=True) if kind == b])

"""Splits a problem into the MIP and the network steps.

*Inputs* form: the network gets copies u of its inputs; its outputs leave the MIP together with their cost,
and rows and bounds on one sample's own inputs and outputs become limits on the network step.

*Inputs and outputs* form: an output that meets columns outside its sample, feeds another
block or must be integer has to stay a column of the MIP, so f(u) = y is a second coupling. No
theorem of the paper covers this form: the paper copies the other columns too (`paper_split`). (A class
output is 0 or 1 by itself: declaring it integer does not count.)

The paper's own cut: the networks have copies of *every* column that their rows touch.

    A_MIP x <= b_MIP          stays in the MIP
    A_NN [u; f(u)] <= b_NN    every row with an output in it goes with the networks, and u is a copy of
                              each other column of such a row, beside the networks' inputs

There is one copy of a column, however many networks read it, and one coupling u = x: what the
paper's theorem is about. Samples that share a column or a row take their step together: a *group*. Groups of
the same shape are a batch.

Cases that the paper does not treat keep the form they have in `split`: outputs that feed another network or
must be integers stay in the MIP behind a second coupling, and so do classes in rows with other columns (a
class is 0 or 1 and has no gradient to satisfy such a row).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.errors import UnsupportedError
from dovetail.core.mip import HAIR, Mip
from dovetail.core.problem import Problem
from dovetail.core.sparse import entries_of


@dataclass(frozen=True, eq=False)
class SampleRow:
    """lower <= sum of entries <= upper over one sample's own copies and outputs, by position."""

    on_inputs: FloatArray
    on_outputs: FloatArray
    lower: float
    upper: float
    name: str


@dataclass(frozen=True, eq=False)
class Member:
    """A block's predictor inside a part, with the places of its inputs among the copies."""

    block: Block
    positions: IntArray
    """(s, d): a sample of the part has s samples of the block, each with d inputs."""


@dataclass(frozen=True, eq=False)
class CoupledBatch:
    """A batch of samples with a common network step."""

    name: str
    members: tuple[Member, ...]
    columns: IntArray
    """(n, d) the columns of which each sample has copies."""
    outputs: IntArray
    """(n, q) the members' output columns, one member after the other."""
    couples_outputs: bool
    rows: tuple[tuple[SampleRow, ...], ...]
    """For each sample, the limits that moved to the network step."""
    classes: tuple[int | None, ...]
    """For each sample of a classifier, the only class that its limits allow, or None."""
    taken: tuple[int, ...] = ()
    """The rows of the MIP that became `rows` and `classes`."""

    @property
    def samples(self) -> int:
        """Number of samples."""
        return len(self.columns)

    @property
    def block(self) -> Block:
        """The block of its first, and usually only, member."""
        return self.members[0].block

    @property
    def is_alone(self) -> bool:
        """Whether it is one block with copies of its inputs only."""
        sizes = [member.positions.shape for member in self.members]
        return sizes == [(1, self.columns.shape[1])]


def alone(
    block: Block,
    *,
    couples_outputs: bool,
    rows: tuple[tuple[SampleRow, ...], ...] | None = None,
    classes: tuple[int | None, ...] | None = None,
    taken: tuple[int, ...] = (),
) -> CoupledBatch:
    """A part that is one block with copies of its inputs only."""
    n, d = block.inputs.shape
    return CoupledBatch(
        block.name,
        (Member(block, np.arange(d)[None, :]),),
        block.inputs,
        block.outputs,
        couples_outputs,
        ((),) * n if rows is None else rows,
        (None,) * n if classes is None else classes,
        taken,
    )


def sample_row(mip: Mip, r: int, columns: IntArray, outputs: IntArray) -> SampleRow:
    """A row over one sample's copies and outputs alone."""
    copy = {int(j): k for k, j in enumerate(columns)}
    output = {int(j): k for k, j in enumerate(outputs)}
    on_inputs, on_outputs = np.zeros(len(columns)), np.zeros(len(outputs))
    for j, a in zip(*entries_of(mip.A, r), strict=True):
        if int(j) in output:
            on_outputs[output[int(j)]] = a
        else:
            on_inputs[copy[int(j)]] = a
    limits = float(mip.row_lower[r]), float(mip.row_upper[r])
    return SampleRow(on_inputs, on_outputs, *limits, mip.row_name(r))


def output_bounds(mip: Mip, outputs: IntArray, copies: int) -> list[SampleRow]:
    """The finite bounds of one sample's outputs, as rows over its `copies` inputs and its outputs."""
    rows = []
    for o, j in enumerate(outputs):
        if np.isfinite(mip.lower[j]) or np.isfinite(mip.upper[j]):
            on_outputs = np.zeros(len(outputs))
            on_outputs[o] = 1.0
            name = f"the bounds of {mip.column_name(int(j))}"
            limits = float(mip.lower[j]), float(mip.upper[j])
            rows.append(SampleRow(np.zeros(copies), on_outputs, *limits, name))
    return rows


@dataclass(frozen=True, eq=False)
class SplitProblem:
    """The MIP without the rows and columns of the network steps, and the parts."""

    mip: Mip
    parts: tuple[CoupledBatch, ...]

    @property
    def columns(self) -> IntArray:
        """Columns of the MIP with a proximal term."""
        columns = [part.columns.ravel() for part in self.parts]
        columns += [part.outputs.ravel() for part in self.parts if part.couples_outputs]
        return np.unique(np.concatenate(columns)) if columns else np.empty(0, dtype=np.int64)


def split(problem: Problem) -> SplitProblem:
    """Choose each block's form and split the problem."""
    mip = problem.mip.minimised()
    rows = sorted_rows(problem, mip)
    parts = tuple(part_of(problem, mip, b, rows) for b in range(len(problem.blocks)))
    return SplitProblem(remaining(mip, parts), parts)


def remaining(mip: Mip, parts: Sequence[CoupledBatch]) -> Mip:
    """The MIP without the rows of the parts, and with fixed columns for the outputs that left."""
    stays = np.ones(mip.n_rows, dtype=bool)
    cost, lower, upper = mip.cost.copy(), mip.lower.copy(), mip.upper.copy()
    for part in parts:
        stays[list(part.taken)] = False
        if part.couples_outputs:
            continue
        gone = part.outputs.ravel()
        cost[gone] = 0.0
        lower[gone] = upper[gone] = np.clip(0.0, mip.lower[gone], mip.upper[gone])
    names = None if mip.row_names is None else tuple(np.array(mip.row_names)[stays])
    return replace(
        mip,
        cost=cost,
        A=mip.A[stays],
        row_lower=mip.row_lower[stays],
        row_upper=mip.row_upper[stays],
        row_names=names,
        lower=lower,
        upper=upper,
    )


@dataclass(frozen=True, eq=False)
class SortedRows:
    """The rows that contain outputs."""

    private: dict[tuple[int, int], list[int]]
    """By block and sample: rows over that sample's own columns."""
    foreign: set[int]
    """Blocks with an output in another row."""


def sorted_rows(problem: Problem, mip: Mip) -> SortedRows:
    """Rows by the sample whose own columns they contain, and the blocks with outputs in other rows."""
    owner = {
        int(j): (b, i)
        for b, block in enumerate(problem.blocks)
        for i in range(block.samples)
        for j in block.outputs[i]
    }
    is_output = np.zeros(mip.n_columns, dtype=bool)
    is_output[problem.outputs] = True
    touches = np.flatnonzero(abs(mip.A) @ is_output.astype(float))
    private: dict[tuple[int, int], list[int]] = {}
    foreign: set[int] = set()
    for r in touches:
        columns, _ = entries_of(mip.A, r)
        owners = {owner[int(j)] for j in columns if is_output[j]}
        b, i = next(iter(owners))
        own = set(problem.blocks[b].inputs[i].tolist())
        others = {int(j) for j in columns if not is_output[j]}
        if len(owners) == 1 and others <= own:
            private.setdefault((b, i), []).append(int(r))
        else:
            foreign.update(b for b, _ in owners)
    return SortedRows(private, foreign)


def needs_columns(problem: Problem, mip: Mip, block: Block) -> bool:
    """Whether a block's outputs must be columns of the MIP: because a block reads them, or because they are
    integers."""
    outputs = block.outputs.ravel()
    feeds = bool(np.isin(outputs, problem.inputs).any())
    return feeds or (bool(mip.integer[outputs].any()) and not block.classifies)


def part_of(problem: Problem, mip: Mip, b: int, sorted_: SortedRows) -> CoupledBatch:
    """One block in the form that its rows require."""
    block = problem.blocks[b]
    together = alone(block, couples_outputs=True)
    if b in sorted_.foreign or needs_columns(problem, mip, block):
        return together
    own = [sorted_.private.get((b, i), []) for i in range(block.samples)]
    rows = [
        tuple(sample_row(mip, r, inputs, outputs) for r in some)
        for some, inputs, outputs in zip(own, block.inputs, block.outputs, strict=True)
    ]
    taken = tuple(r for some in own for r in some)
    if not block.classifies:
        d = block.inputs.shape[1]
        limits = [(*rows[i], *output_bounds(mip, block.outputs[i], d)) for i in range(block.samples)]
        return alone(block, couples_outputs=False, rows=tuple(limits), taken=taken)
    classes: list[int | None] = []
    for i in range(block.samples):
        if any(np.any(row.on_inputs) for row in rows[i]):
            return together
        allowed = _allowed_classes(mip, block, i, rows[i])
        everything = max(2, block.outputs.shape[1])
        if len(allowed) not in (1, everything):
            return together  # none, or some of several: the MIP has to choose
        classes.append(allowed[0] if len(allowed) == 1 else None)
    return alone(block, couples_outputs=False, classes=tuple(classes), taken=taken)


def _allowed_classes(mip: Mip, block: Block, i: int, rows: tuple[SampleRow, ...]) -> list[int]:
    """The classes that satisfy the sample's own bounds and rows."""
    outputs = block.outputs[i]
    candidates = np.eye(len(outputs)) if len(outputs) > 1 else np.array([[0.0], [1.0]])
    lower, upper = mip.lower[outputs], mip.upper[outputs]

    def fits(y: FloatArray) -> bool:
        in_bounds: BoolArray = (y >= lower - HAIR) & (y <= upper + HAIR)
        in_rows = (row.lower - HAIR <= row.on_outputs @ y <= row.upper + HAIR for row in rows)
        return bool(in_bounds.all()) and all(in_rows)

    return [c for c, y in enumerate(candidates) if fits(y)]


MOST_ENTRIES = 100_000_000
"""Largest number of entries of the groups' rows, stored densely: 0.8 GB."""


def paper_split(problem: Problem) -> SplitProblem:
    """Split the problem as the paper does."""
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
    """Samples with a common network step."""

    samples: tuple[tuple[int, int], ...]
    """(block, sample), sorted."""
    columns: tuple[int, ...]
    """The columns that have copies: the samples' inputs, then other columns of their rows."""
    positions: tuple[tuple[int, ...], ...]
    """Sample by sample, the places of its inputs among the copies."""
    rows: tuple[int, ...]

    @property
    def shape(self) -> tuple[object, ...]:
        """A key: groups with the same key are a batch."""
        return tuple(b for b, _ in self.samples), self.positions, len(self.columns)


def _groups(mip: Mip, blocks: list[Block]) -> list[_SampleGroup]:
    """The samples of the blocks that leave, joined if they share a row or a column that can move."""
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
    """The connected component of every sample; fixed columns connect nothing."""
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
    """Groups with the same key as a batch."""
    first = groups[0]
    kinds = list(dict.fromkeys(b for b, _ in first.samples))
    outputs = np.array([[j for b, i in group.samples for j in blocks[b].outputs[i]] for group in groups])
    columns = np.array([group.columns for group in groups])
    most = max(len(group.rows) for group in groups) + outputs.shape[1]
    name = _unused("+".join(blocks[b].name for b in kinds), names)
    if columns.size * most > MOST_ENTRIES:
        raise UnsupportedError(
            f"{name}: {len(first.samples):,} samples share constraints or variables, and their step would "
            f'hold {most:,} rows over {columns.shape[1]:,} copies densely; use copies="inputs".'
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
    """The name, numbered if groups of the same blocks have it already."""
    numbered = (name if k == 1 else f"{name} #{k}" for k in count(1))
    return next(each for each in numbered if each not in names)


def _positions(group: _SampleGroup, b: int) -> IntArray:
    """The places of the inputs of a block's samples among the copies of their group."""
    return np.array([own for own, (kind, _) in zip(group.positions, group.samples, strict=True) if kind == b])

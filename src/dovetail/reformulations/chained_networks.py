"""Two chained networks as one, if only the second reads the outputs of the first.

h = first(x), y = second(h) becomes y = second(first(x)). The columns h are in no row and not in the
objective, and their bounds exclude nothing, so they are removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dovetail.bounds.box import Box
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.errors import DovetailError
from dovetail.core.mip import Mip
from dovetail.core.predictor import ComposedPredictor, Composition
from dovetail.core.probe import within_reach
from dovetail.core.problem import Problem
from dovetail.core.words import several
from dovetail.reformulations.composed import composed
from dovetail.reformulations.reformulated import Reformulated, picked


@dataclass(frozen=True)
class ChainedNetworks:
    """Joins every such pair."""

    name = "chained networks"

    def apply(self, given: Reformulated) -> Reformulated | None:
        """The problem without the columns between networks; None if there are none."""
        problem = given.problem
        if not problem.blocks:
            return None
        blocks, first = list(problem.blocks), list[Block]()
        while (found := _chained(problem.mip, blocks, given.box)) is not None:
            before, after, whole = found
            blocks = [whole if block is after else block for block in blocks if block is not before]
            first.append(before)
        if not first:
            return None
        gone = np.zeros(problem.mip.n_columns, dtype=bool)
        for block in first:
            gone[block.outputs] = True
        note = f"{several(len(first), 'network')} joined with the network that reads the outputs"
        kept = np.flatnonzero(~gone)

        def back(z: FloatArray) -> FloatArray:
            x = np.zeros(gone.size)
            x[kept] = z
            for block in first:
                block.write(x, block.predictor.predict(block.read(x)))
            return x

        into = picked(kept, gone.size)
        return Reformulated(
            _without_unused_columns(problem, blocks, gone), given, into=into, back=back, note=note
        )


def _chained(mip: Mip, blocks: Sequence[Block], box: Box) -> tuple[Block, Block, Block] | None:
    """A block, the block that reads it, and both as one."""
    free = ~mip.integer & (mip.cost == 0.0) & (np.bincount(mip.A.indices, minlength=mip.n_columns) == 0)
    read = np.bincount(np.concatenate([block.inputs.ravel() for block in blocks]), minlength=mip.n_columns)
    free &= read == 1
    behind = {block.inputs[0, 0]: block for block in blocks if block.inputs.size}
    for before in blocks:
        if before.classifies or not np.all(free[before.outputs]):
            continue
        after = behind.get(before.outputs[0, 0])
        if after is None or not np.array_equal(after.inputs, before.outputs):
            continue
        whole = _joined_block(before, after, box) if unlimited(mip, before, box) else None
        if whole is not None:
            return before, after, whole
    return None


def unlimited(mip: Mip, block: Block, box: Box) -> bool:
    """Whether the bounds of its outputs exclude nothing."""
    program = block.description.program_if_known(block.inputs.shape[1])
    if program is None:
        return False
    low, high = program.ranges(box.lower[block.inputs], box.upper[block.inputs])
    low, high = low[:, program.outputs], high[:, program.outputs]
    lower, upper = mip.lower[block.outputs], mip.upper[block.outputs]
    return bool(np.all((lower == -np.inf) | (lower <= low)) and np.all((upper == np.inf) | (high <= upper)))


def _joined_block(before: Block, after: Block, box: Box) -> Block | None:
    """Both networks as one, if the operations of each are known."""
    if before.description.program is None or after.description.program is None:
        return None
    lower, upper = within_reach(box.lower, box.upper)
    predictor = composed(before.predictor, after.predictor)
    try:
        known = predictor.describe(0.5 * (lower + upper)[before.inputs])
    except DovetailError:
        return None
    sizes = {"features": before.inputs.shape[1], "outputs": after.outputs.shape[1]}
    return replace(
        after,
        predictor=predictor,
        description=replace(known, **sizes),
        inputs=before.inputs,
        training_range=None,
    )


def _without_unused_columns(problem: Problem, blocks: Sequence[Block], gone: BoolArray) -> Problem:
    """The problem with these blocks, without columns that are in no row."""
    mip, place = problem.mip, np.cumsum(~gone) - 1
    host = Mip(
        mip.cost[~gone], mip.A[:, np.flatnonzero(~gone)], mip.row_lower, mip.row_upper,
        mip.lower[~gone], mip.upper[~gone], mip.integer[~gone], mip.sense, mip.offset,
        None if mip.names is None else [mip.names[j] for j in np.flatnonzero(~gone).tolist()], mip.row_names,
    )  # fmt: skip
    placed = [replace(b, inputs=place[b.inputs], outputs=place[b.outputs]) for b in blocks]
    return problem.derived(host, tuple(placed))


@dataclass(frozen=True)
class TakenApart:
    """Splits every product or square of tree outputs into the ensemble and a predictor of its outputs."""

    name = "products taken apart"

    def apply(self, given: Reformulated) -> Reformulated | None:
        """The problem with two blocks for each of these; None if there are none."""
        problem, box = given.problem, given.box
        blocks, made = list[Block](), list[_SplitBlock]()
        first = problem.mip.n_columns
        for block in problem.blocks:
            one = _split_block(block, box, first)
            if one is None:
                blocks.append(block)
                continue
            made.append(one)
            blocks += [one.inner, one.outer]
            first += one.new.size
        if not made:
            return None
        new = [one.new.size for one in made]
        lower = np.concatenate([one.lower for one in made])
        names = [f"{one.inner.name}[{k}]" for one in made for k in range(one.new.size)]
        host = problem.mip.with_columns(
            lower, np.concatenate([one.upper for one in made]), np.zeros(sum(new), dtype=bool), names
        )
        fills = tuple(one.fill for one in made if one.new.size)
        note = f"{several(len(made), 'product')} of tree outputs split into their factors"
        return Reformulated(problem.derived(host, tuple(blocks)), given, fills, note=note)


@dataclass(frozen=True, eq=False)
class _SplitBlock:
    """A block split into two."""

    inner: Block
    outer: Block
    new: IntArray
    """The new columns that the inner predictor writes."""
    lower: FloatArray
    upper: FloatArray

    def fill(self, z: FloatArray) -> FloatArray:
        """The inner predictor's answers."""
        return self.inner.predictor.predict(self.inner.read(z)).ravel()


def _split_block(block: Block, box: Box, first: int) -> _SplitBlock | None:
    """The split block, with new columns from `first` on; None for other blocks."""
    apart = block.predictor.apart() if isinstance(block.predictor, ComposedPredictor) else None
    if apart is None or block.classifies:
        return None
    seen = block.inputs[:, : block.inputs.shape[1] - apart.extra]
    lower, upper = within_reach(box.lower, box.upper)
    middle = 0.5 * (lower + upper)
    known = apart.inner.describe(middle[seen])
    ensemble = known.trees_if_known()
    if ensemble is None:
        return None
    answers = apart.inner.predict(middle[seen[:1]]).shape[1]
    new = np.arange(0 if apart.keep else block.samples * answers) + first
    written = block.outputs[:, :answers] if apart.keep else new.reshape(block.samples, answers)
    rest = block.outputs[:, answers:] if apart.keep else block.outputs
    inner = replace(
        block,
        name=f"{block.name} itself",
        predictor=apart.inner,
        description=replace(known, features=seen.shape[1], outputs=answers, trees=lambda: ensemble),
        inputs=seen,
        outputs=written,
        training_range=None,
    )
    ends = np.full(new.size, np.inf)
    return _SplitBlock(inner, _outer(block, apart, written, rest), new, -ends, ends)


def _outer(block: Block, apart: Composition, written: IntArray, rest: IntArray) -> Block:
    """The function of the inner predictor's answers."""
    outer = apart.outer
    inputs = np.hstack([written[:, outer.answers], block.inputs[:, outer.inputs]])
    description = outer.predictor.describe(np.zeros((1, inputs.shape[1])))
    return replace(
        block,
        predictor=outer.predictor,
        description=replace(description, features=inputs.shape[1], outputs=rest.shape[1]),
        inputs=inputs,
        outputs=rest,
        training_range=None,
    )

"""Products and squares of what trees predict, taken apart: the trees are one predictor, the product another.

    (price, rival) -> price * demand(price, rival)

becomes

    (price, rival) -> demand,   (demand, price) -> demand * price

with a column for the demand where there is none. A network and its product are one program, which bounds know
as a whole. Trees are no program: methods know them by their cells, and the product by its envelopes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dovetail.bounds.box import Box
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.predictor import Apart, MadeOfTwo
from dovetail.core.probe import within_reach
from dovetail.core.words import several
from dovetail.reformulations.reformulated import Reformulated


@dataclass(frozen=True)
class TakenApart:
    """Every product or square of a tree ensemble's answers as a predictor behind the ensemble."""

    name = "products taken apart"

    def apply(self, given: Reformulated) -> Reformulated | None:
        """The problem with two blocks for each of these; None where there is none."""
        problem, box = given.problem, given.box
        blocks, made = list[Block](), list[_Made]()
        first = problem.mip.n_columns
        for block in problem.blocks:
            one = _made(block, box, first)
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
        note = f"{several(len(made), 'product')} of what trees predict taken apart"
        return Reformulated(problem.derived(host, tuple(blocks)), given, fills, note=note)


@dataclass(frozen=True, eq=False)
class _Made:
    """A block as two."""

    inner: Block
    outer: Block
    new: IntArray
    """The columns that the inner one writes, where it had none."""
    lower: FloatArray
    upper: FloatArray

    def fill(self, z: FloatArray) -> FloatArray:
        """The inner one's answers."""
        return self.inner.predictor.predict(self.inner.read(z)).ravel()


def _made(block: Block, box: Box, first: int) -> _Made | None:
    """The block taken apart, with new columns from `first` on; None where it is no such block."""
    apart = block.predictor.apart() if isinstance(block.predictor, MadeOfTwo) else None
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
        description=replace(known, features=seen.shape[1], outputs=answers),
        inputs=seen,
        outputs=written,
        training_range=None,
    )
    ends = np.full(new.size, np.inf)
    return _Made(inner, _outer(block, apart, written, rest), new, -ends, ends)


def _outer(block: Block, apart: Apart, written: IntArray, rest: IntArray) -> Block:
    """What is made of the answers."""
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

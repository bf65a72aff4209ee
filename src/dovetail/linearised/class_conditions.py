"""What makes a class, as linear conditions on logits: a program over slopes can hold or miss those."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.block import Block


@dataclass(frozen=True, eq=False)
class ClassConditions:
    """While column[c] is when[c], form[c]'values must be at least margin[c].

    A single logit must be above the margin for class 1 and below minus the margin for class 0; of several,
    the class's own must lead each other one by the margin.
    """

    column: IntArray
    """(c,) the class output, 0 or 1, that calls for the condition."""
    when: BoolArray
    """(c,) the value of that output which does."""
    form: sp.csr_array
    """(c, m) the combination of values, in the order of `Networks.outputs`."""
    margin: FloatArray
    """(c,) the block's epsilon."""

    @classmethod
    def of(cls, blocks: Sequence[Block], outputs: int) -> ClassConditions:
        """The conditions of all classified samples among so many outputs."""
        column: list[int] = []
        when, margin = [], []
        row, value, sign = [], [], []
        first = 0
        for block in blocks:
            q = block.outputs.shape[1]
            for i in range(block.samples if block.classifies else 0):
                at = first + i * q
                pairs = [(k, j) for k in range(q) for j in range(q) if k != j]
                # one logit decides alone: against itself at 0
                for k, j in pairs or [(0, 0)]:
                    for wanted in (True,) if pairs else (True, False):
                        c = len(column)
                        column.append(int(block.outputs[i, k]))
                        when.append(wanted)
                        margin.append(block.epsilon)
                        row += [c, c] if pairs else [c]
                        value += [at + k, at + j] if pairs else [at]
                        sign += [1.0, -1.0] if pairs else [1.0 if wanted else -1.0]
            first += block.outputs.size
        form = sp.csr_array((sign, (row, value)), shape=(len(column), outputs)) if column else None
        return cls(
            np.array(column, dtype=np.int64),
            np.array(when, dtype=bool),
            form if form is not None else sp.csr_array((0, outputs)),
            np.array(margin),
        )

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self.column.size)

    @cached_property
    def weights(self) -> sp.csr_array:
        """How much each value counts in each condition, whatever its sign."""
        return abs(self.form)

    def active(self, z: FloatArray) -> BoolArray:
        """Which conditions the classes in a point, or in each of several, call for."""
        return np.asarray((z[..., self.column] > 0.5) == self.when)

    def shortfall(self, z: FloatArray, values: FloatArray) -> FloatArray:
        """How far the values are from the classes in `z`: 0 where a condition holds or is not called for."""
        return np.asarray(np.maximum(self.margin - values @ self.form.T, 0.0) * self.active(z))

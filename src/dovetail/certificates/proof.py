"""The data of a proved bound as arrays: enough to verify the bound independently.

    bound  <=  constant  +  prices of constraints  +  free variables at their best  +  values of the parts

A *part* is a subset of the variables, with the constraints and networks among them, and a
branch-and-bound tree. The tree divides a box over these variables and over the inputs of the networks'
nonlinear steps (the neurons). Each leaf of the tree has multipliers of constraints. The multipliers give
a linear function of the variables and of the networks' outputs, and planes bound this function from below
on the leaf. A leaf whose objective has weight 0 is shown to be empty.

All data are in minimisation form, with constraints and bounds loosened by the check's tolerance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from enum import StrEnum

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray

COST_ROW = -2
"""Stands for a row's number: the cost of the part."""
LARGEST_BYTES = 100_000_000
"""Larger certificates are not kept."""


class CertificateKind(StrEnum):
    """Whether a certificate can be verified."""

    CHECKED = "checked"
    """The certificate holds everything needed for verification."""
    SOLVER = "solver"
    """The proof is the search tree of an engine, which is not recorded."""


def nothing() -> FloatArray:
    """No multipliers."""
    return np.zeros((0, 0))


@dataclass(frozen=True, eq=False)
class Leaves:
    """The multipliers of all leaves. Arrays without columns stand for zeros, or for the default rule."""

    objective: FloatArray
    """(K,) weight of the objective: 1, or 0 if the leaf is empty."""
    rows: FloatArray
    """(K, rows of the part)."""
    bounds: FloatArray = field(default_factory=nothing)
    """(K, outputs of the part's networks) multipliers of the ranges of values and logits: of the lower end
    if positive, of the upper end if negative."""
    conditions: FloatArray = field(default_factory=nothing)
    """(K, class outputs of the part) multipliers of the conditions on logits. For a class by one logit: if
    positive of the condition for class 1, if negative of that for class 0; for one of several classes of the
    condition of the fixed class, nonnegative."""
    slopes: FloatArray = field(default_factory=nothing)
    """(K, neurons of the part) lower lines of ReLUs with open signs; NaN: the default rule."""
    neurons: FloatArray = field(default_factory=nothing)
    """(K, neurons of the part) multipliers of the neurons' ranges, in the form of `bounds`."""

    def __len__(self) -> int:
        return len(self.objective)


@dataclass(frozen=True, eq=False)
class ProofTree:
    """Splits of one variable at one value each, and leaves; split 0 is the root.

    A variable is a column (by its index) or, from the number of columns on, a neuron of the part. The first
    child has the values below, the second those above; an integer value is in one of them.
    """

    variable: IntArray
    at: FloatArray
    children: IntArray
    """(splits, 2): a later split, or -1 - k for leaf k."""
    leaves: Leaves
    uses: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """(leaves,) the multipliers of each leaf; empty: every leaf has its own, in order."""

    @property
    def used(self) -> IntArray:
        """(leaves,) the multipliers of each leaf as explicit numbers."""
        return self.uses if self.uses.size else np.arange(len(self.leaves))


@dataclass(frozen=True, eq=False)
class ProofPart:
    """Some columns with their rows and samples, and a lower bound of their cost."""

    columns: IntArray
    rows: IntArray
    tree: ProofTree
    value: float
    """A lower bound of the objective of these columns minus the rows' prices."""
    defined: IntArray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    """(k, 2) inputs of networks and the equations that define them by other columns."""
    row: int = -1
    """A row of the part that serves for bounds of neurons, in addition to the columns' bounds; -1: none;
    `COST_ROW`: the part's cost is at most its value, because other points need no proof."""


def arrays_of(part: ProofPart) -> Iterator[np.ndarray]:
    """Every array of a part."""
    tree = part.tree
    yield from (part.columns, part.rows, part.defined, tree.variable, tree.at, tree.children, tree.uses)
    yield from (getattr(tree.leaves, place.name) for place in fields(Leaves))

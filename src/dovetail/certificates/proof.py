"""What a proven bound rests on, in arrays: enough for somebody else to see that it holds.

    bound  <=  constant  +  rows' prices  +  free columns at their best  +  the values of the parts

A *part* is some of the columns with the rows and the networks among them, and a tree that divides what they
can be: a box over the columns and over what the networks' nonlinear steps read (their neurons). Each leaf of
the tree has multipliers of rows; they leave a linear function of the columns and of the networks' outputs,
which is bounded from below on the leaf by planes. A leaf whose objective has weight 0 is shown to be empty.

All in minimisation form, over rows and bounds as far out as the check accepts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from enum import StrEnum

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray

COST_ROW = -2
"""In place of a row's number: what the part costs."""
LARGEST_BYTES = 100_000_000
"""Beyond it a certificate is not kept."""


class CertificateKind(StrEnum):
    """Whether somebody else can look at it again."""

    CHECKED = "checked"
    """Everything it needs is in it."""
    SOLVER = "solver"
    """The proof is the search tree of an engine, which keeps none: its word."""


def nothing() -> FloatArray:
    """No multipliers."""
    return np.zeros((0, 0))


@dataclass(frozen=True, eq=False)
class Leaves:
    """Multipliers that close leaves. Arrays without columns stand for zeros, or for the usual rule."""

    objective: FloatArray
    """(K,) weight of the objective: 1, or 0 where the leaf is shown to be empty."""
    rows: FloatArray
    """(K, rows of the part)."""
    bounds: FloatArray = field(default_factory=nothing)
    """(K, outputs of the part's networks) of the ranges of values and logits: where positive of the lower
    end, where negative of the upper one."""
    conditions: FloatArray = field(default_factory=nothing)
    """(K, class outputs of the part) of what logits must be. Of a class by one logit: where positive of what
    holds where the class is 1, where negative of what holds where it is 0; of one by several that of the one
    that is fixed, never negative."""
    slopes: FloatArray = field(default_factory=nothing)
    """(K, neurons of the part) lower lines of ReLUs whose sign is open; NaN: the usual rule."""
    neurons: FloatArray = field(default_factory=nothing)
    """(K, neurons of the part) of the neurons' ranges, as `bounds`."""

    def __len__(self) -> int:
        return len(self.objective)


@dataclass(frozen=True, eq=False)
class ProofTree:
    """Splits, each of one variable at one value, and the leaves that are left; split 0 is the root.

    A variable is a column (by its index) or, from the number of columns on, a neuron of the part. The first
    child has what is below, the second what is above; an integer lies in one of them.
    """

    variable: IntArray
    at: FloatArray
    children: IntArray
    """(splits, 2): a later split, or -1 - k for leaf k."""
    leaves: Leaves
    uses: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """(leaves,) which multipliers close each; none: every leaf has its own, in order."""

    @property
    def used(self) -> IntArray:
        """(leaves,) the same, written out."""
        return self.uses if self.uses.size else np.arange(len(self.leaves))


@dataclass(frozen=True, eq=False)
class ProofPart:
    """Some columns, the rows and samples among them, and what they cost at least."""

    columns: IntArray
    rows: IntArray
    tree: ProofTree
    value: float
    """What the objective of these columns, less the rows' prices, never falls below."""
    defined: IntArray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    """(k, 2) inputs of networks and the equality rows that say what they are in terms of other columns."""
    row: int = -1
    """A row of the part that bounds of neurons take account of, beside the columns' bounds; -1: none;
    `COST_ROW`: that the part costs no more than its value, since other points need no proof."""


def arrays_of(part: ProofPart) -> Iterator[np.ndarray]:
    """Every array of a part."""
    tree = part.tree
    yield from (part.columns, part.rows, part.defined, tree.variable, tree.at, tree.children, tree.uses)
    yield from (getattr(tree.leaves, place.name) for place in fields(Leaves))

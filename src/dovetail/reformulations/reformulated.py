"""Problems rewritten as others that are easier, and the way back: one protocol for every rewriting.

A reformulation appends columns and rows and may turn block samples into them: a point is restricted by
cutting it off and lifted by filling the new columns in. A presolve takes columns away or joins them, and has
a way back. Reformulations are composed: each is applied to what the one before it made.

What a reformulation proves it says with it. Points are looked for in `problem`. Bounds are proved of
`for_bounds`: the same where its rows hold at every point that the deployed predictors can give, and a
relaxation with rows of its own where the predictors' rounding calls for one. Where nothing is known of the
rounding, `proves` is False.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from dovetail.bounds.box import Box, narrow, propagate
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.problem import Problem
from dovetail.run.context import SolveContext, Start
from dovetail.run.incumbent import LiftedIncumbent
from dovetail.structure.structure import structure_of

Fill = Callable[[FloatArray], FloatArray]
"""The values of some new columns, given all columns before them."""


@dataclass(frozen=True, eq=False)
class Reformulated:
    """A problem after some rewriting, and how to carry points over."""

    problem: Problem
    previous: Reformulated | None = None
    """What the last reformulation was applied to; None: nothing is rewritten yet."""
    fills: tuple[Fill, ...] = ()
    settled: Fill | None = None
    """A point with all columns, moved to where its new ones say that it is meant; None: it is there."""
    relaxed: Reformulated | None = None
    """What bounds are proved of, if not of `problem`."""
    slack: FloatArray | None = None
    """By how much each column before may differ here: in a relaxation, by the predictors' rounding."""
    proves: bool = True
    note: str = ""
    """What was rewritten, for the log."""
    known_box: Box | None = None
    into: sp.csr_array | None = None
    """The first columns here, each a sum of columns before (see `picked`); None: all of them as they are."""
    back: Fill | None = None
    """All columns before, given those first ones; None where they are the same."""

    @classmethod
    def start(cls, problem: Problem, box: Box, relaxed: Problem | None = None) -> Reformulated:
        """A problem as it is, with a box that holds its points; `relaxed` is what bounds are proved of."""
        twin = None if relaxed is None else cls(relaxed, known_box=box)
        return cls(problem, relaxed=twin, known_box=box)

    @property
    def original(self) -> Problem:
        """The problem before any rewriting."""
        return self.problem if self.previous is None else self.previous.original

    @property
    def for_bounds(self) -> Reformulated:
        """What bounds are proved of."""
        return self if self.relaxed is None else self.relaxed

    @cached_property
    def box(self) -> Box:
        """A box that holds every point of the problem, and of its relaxation."""
        if self.known_box is not None:
            return self.known_box
        if self.relaxed is not None:
            return self.relaxed.box
        assert self.previous is not None
        before, mip = self.previous.box, self.problem.mip
        slack = np.zeros(before.lower.size) if self.slack is None else self.slack
        least, most = self._first_ends(before.lower - slack, before.upper + slack)
        lower, upper = mip.lower.copy(), mip.upper.copy()
        narrow(lower, upper, np.arange(least.size), least, most)
        return propagate(replace(mip.minimised(), lower=lower, upper=upper))  # rows bound what they write

    def lift(self, x: FloatArray) -> FloatArray:
        """A point of the original as one of this problem."""
        if self.previous is None:
            return x
        z = self._first(self.previous.lift(x))
        return np.concatenate([z, *(fill(z) for fill in self.fills)])

    def _first(self, values: FloatArray) -> FloatArray:
        """The first columns here of a point before."""
        return values if self.into is None else np.asarray(self.into @ values)

    def _first_ends(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The least and the most of the first columns here, between bounds of those before."""
        if self.into is None:
            return lower, upper
        up, down = self.into.maximum(0.0), self.into.minimum(0.0)
        return up @ lower + down @ upper, up @ upper + down @ lower

    def carried(self, values: FloatArray) -> FloatArray:
        """Sizes for the original's columns, for the columns here; 0 for those that were appended."""
        if self.previous is None:
            return values
        before = self.previous.carried(values)
        first = before if self.into is None else np.asarray(abs(self.into) @ before)
        return np.concatenate([first, np.zeros(self.problem.mip.n_columns - first.size)])

    def restrict(self, z: FloatArray) -> FloatArray:
        """A point of this problem as one of the original."""
        if self.previous is None:
            return z
        meant = z if self.settled is None else self.settled(z)
        if self.back is not None and self.into is not None:
            return self.previous.restrict(self.back(meant[: self.into.shape[0]]))
        return self.previous.restrict(meant[: self.previous.problem.mip.n_columns])


def picked(columns: IntArray, count: int) -> sp.csr_array:
    """These of so many columns, in this order, as `Reformulated.into`."""
    ones = np.ones(columns.size)
    return sp.csr_array((ones, columns, np.arange(columns.size + 1)), shape=(columns.size, count))


class Reformulation(Protocol):
    """One way to rewrite problems; `reformulate` takes any number of them."""

    @property
    def name(self) -> str:
        """How the log calls it."""
        ...

    def apply(self, given: Reformulated) -> Reformulated | None:
        """`given.problem` rewritten, with `given` as its `previous`; None where there is nothing to do.

        What `given` is relaxed to is not its business: `reformulate` applies it to that as well.
        """
        ...


def reformulate(given: Reformulated, reformulations: Iterable[Reformulation]) -> Reformulated:
    """One reformulation after the other, over what points are looked for in and what bounds are proved of.

    The two have the same columns: a reformulation that adds others to one of them is left out.
    """
    for reformulation in reformulations:
        further = reformulation.apply(given)
        if further is None:
            continue
        if given.relaxed is not None:
            bounds = reformulation.apply(given.relaxed) or given.relaxed
            if not _same_columns(bounds.for_bounds, further):
                continue
            further = replace(further, relaxed=bounds.for_bounds, proves=further.proves and bounds.proves)
        given = further
    return given


def _same_columns(one: Reformulated, other: Reformulated) -> bool:
    if one.into is not None and other.into is not None:
        same = one.into.shape == other.into.shape and (one.into != other.into).nnz == 0
    else:
        same = one.into is other.into
    return same and one.problem.mip.n_columns == other.problem.mip.n_columns


def context_of(context: SolveContext, reformulated: Reformulated) -> SolveContext:
    """The same solve over the reformulated problem; candidates are restricted before they are checked."""
    if reformulated.previous is None:
        return context
    x, relaxed = context.start.x, reformulated.relaxed
    there, back = reformulated.lift, reformulated.restrict
    made = context.rewritten(
        reformulated.problem,
        incumbent=LiftedIncumbent(context.incumbent, there, back, reformulated.carried),
        start=Start(None if x is None else there(x)),
        relaxed=None if relaxed is None else relaxed.problem,
        archive=context.archive.restricted(back),
    )
    if reformulated.problem.blocks:
        made.keep(structure_of, replace(structure_of(made), known_box=reformulated.box))
    return made

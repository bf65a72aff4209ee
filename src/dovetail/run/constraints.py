"""The constraints of a problem at a solution, and what changed when a limit was moved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.mip import TOLERANCE
from dovetail.core.names import LazyNames, NumberedNames
from dovetail.core.words import did_you_mean, grid, listed, several
from dovetail.run.record import read, sayable
from dovetail.run.second_opinion import SecondOpinion
from dovetail.run.trace import frame

Result = Any
"""A `dovetail.Result`, whose module imports this one."""
LINEARISED, DECOMPOSED, SLACK, LOCAL = "linearised", "decomposition", "not binding", "local"
"""Where a price comes from: the LP of the linearised predictors, the prices that proved the bound, or the
fact that the constraint is at no limit."""
MOST_IN_FILE = 20_000
"""Largest number of constraints in a result's file, the hardest first."""
SHOWN = 20
"""Number of constraints shown in a short form."""


@dataclass(frozen=True, eq=False)
class Constraint:
    """One constraint at the solution."""

    name: str
    activity: float
    lower: float
    upper: float
    slack: float
    """The distance from the nearer limit."""
    binding: bool
    price: float | None
    """By how much the objective changes per unit of the limit; None if that is not known."""
    price_from: str
    """"linearised", "local", "decomposition" or "not binding"; empty without a price."""


@dataclass(frozen=True, eq=False)
class ConstraintTable(Sequence[Constraint]):
    """All constraints at the solution, in the order of the model.

    >>> import dovetail as dt, numpy as np
    >>> mip = dt.Mip([-1.0], [[2.0]], [-np.inf], [3.0], upper=9.0, row_names=["budget"])
    >>> table = dt.solve(dt.Problem(mip), log=False).constraint_table
    >>> table["budget"].price, table["budget"].binding
    (-0.5, True)
    """

    names: Sequence[str]
    activity: FloatArray
    lower: FloatArray
    upper: FloatArray
    price: FloatArray
    """NaN where there is none."""
    price_from: Sequence[str]
    size: FloatArray
    """The sum of the sizes of the terms: a price times the size is independent of units."""

    def __len__(self) -> int:
        return int(self.activity.size)

    def __getitem__(self, which: Any) -> Any:
        if isinstance(which, slice):
            return [self[i] for i in range(len(self))[which]]
        if isinstance(which, str):
            if which not in self._index:
                raise KeyError(f"no constraint is called {which!r}{did_you_mean(which, self._index)}")
            which = self._index[which]
        i = range(len(self))[which]
        price = float(self.price[i])
        return Constraint(
            self.names[i], float(self.activity[i]), float(self.lower[i]), float(self.upper[i]),
            float(self.slack[i]), bool(self.binding[i]), None if np.isnan(price) else price,
            self.price_from[i],
        )  # fmt: skip

    def __iter__(self) -> Iterator[Constraint]:
        return (self[i] for i in range(len(self)))

    @cached_property
    def _index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def slack(self) -> FloatArray:
        """(constraints,) the distance from the nearer limit; 0 if the limit is violated within tolerance."""
        return np.maximum(np.minimum(self.activity - self.lower, self.upper - self.activity), 0.0)

    @cached_property
    def at_lower(self) -> BoolArray:
        """(constraints,) whether each is at its lower limit."""
        return np.asarray(self.activity <= self.lower + TOLERANCE)

    @cached_property
    def at_upper(self) -> BoolArray:
        """(constraints,) whether each is at its upper limit."""
        return np.asarray(self.activity >= self.upper - TOLERANCE)

    @cached_property
    def binding(self) -> BoolArray:
        """(constraints,) whether each is at a limit."""
        return self.at_lower | self.at_upper

    @cached_property
    def hardest(self) -> IntArray:
        """The constraints with a price other than 0, those first whose limits are worth most in proportion
        to the size of the constraint."""
        worth = np.abs(np.nan_to_num(self.price)) * self.size
        order = np.argsort(-worth, kind="stable")
        return np.asarray(order[worth[order] > 0.0])

    @property
    def prices(self) -> dict[str, float]:
        """The known prices by name."""
        known = np.flatnonzero(~np.isnan(self.price)).tolist()
        return {self.names[i]: float(self.price[i]) for i in known}

    def without(self, rows: Sequence[int]) -> ConstraintTable:
        """The table without some rows."""
        kept = np.delete(np.arange(len(self)), list(rows))
        numbers = (self.activity[kept], self.lower[kept], self.upper[kept], self.price[kept])
        names, sources = ([part[i] for i in kept.tolist()] for part in (self.names, self.price_from))
        return ConstraintTable(names, *numbers, tuple(sources), self.size[kept])

    def as_local(self) -> ConstraintTable:
        """The table of a solution that is not proved optimal: a better one may have other prices."""
        local = tuple(LOCAL if each == LINEARISED else each for each in self.price_from)
        return replace(self, price_from=local)

    def columns(self) -> dict[str, Any]:
        """The table by columns."""
        return {
            "activity": self.activity, "lower": self.lower, "upper": self.upper, "slack": self.slack,
            "binding": self.binding, "price": self.price, "price_from": list(self.price_from),
        }  # fmt: skip

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame with the names as its index."""
        made = frame("ConstraintTable.to_frame", self.columns())
        made.index = list(self.names)
        return made

    def _lines(self) -> Iterator[tuple[str, ...]]:
        first = [*self.hardest[:SHOWN].tolist()]
        rest = [i for i in range(min(len(self), 2 * SHOWN)) if i not in first]
        for i in sorted([*first, *rest][:SHOWN]):
            c = self[i]
            price = "" if c.price is None else f"{c.price:.6g}"
            yield (
                c.name, f"{c.activity:.6g}", f"{c.lower:.6g}", f"{c.upper:.6g}", f"{c.slack:.6g}",
                "yes" if c.binding else "", price, c.price_from,
            )  # fmt: skip

    def __repr__(self) -> str:
        head = ("constraint", "activity", "lower", "upper", "slack", "binding", "price", "price from")
        lines = [head, *self._lines()]
        wide = [max(len(line[k]) for line in lines) for k in range(len(head))]
        text = [
            "  ".join(f"{cell:<{w}}" for cell, w in zip(line, wide, strict=True)).rstrip() for line in lines
        ]
        return "\n".join([*text, *([f"... of {len(self):,}"] if len(self) > SHOWN else [])])

    def _repr_html_(self) -> str:
        head = ("constraint", "activity", "lower", "upper", "slack", "binding", "price", "price from")
        return grid(several(len(self), "constraint"), head, self._lines())

    def to_record(self) -> dict[str, Any]:
        """As JSON."""
        rows = np.arange(len(self))
        if rows.size > MOST_IN_FILE:
            binding = np.flatnonzero(self.binding)
            rows = np.sort(np.unique(np.concatenate([self.hardest, binding]))[:MOST_IN_FILE])
        arrays = {name: getattr(self, name)[rows] for name in ("activity", "lower", "upper", "price", "size")}
        texts = {name: [getattr(self, name)[i] for i in rows.tolist()] for name in ("names", "price_from")}
        return {name: sayable(value) for name, value in (texts | arrays).items()}

    @classmethod
    def from_record(cls, record: Any) -> ConstraintTable | None:
        """Read the output of `to_record`; a `ValueError` for anything else."""
        if record is None:
            return None
        numbers = {
            name: read(name, record[name], FloatArray)
            for name in ("activity", "lower", "upper", "price", "size")
        }
        texts = {name: read(name, record[name], tuple[str, ...]) for name in ("names", "price_from")}
        if len({len(part) for part in (*numbers.values(), *texts.values())}) != 1:
            raise ValueError("the columns of the constraints have different lengths")
        return cls(**numbers, **texts)

    @classmethod
    def of(
        cls,
        names: Sequence[str] | None,
        limits: tuple[FloatArray, FloatArray],
        activity: FloatArray,
        size: FloatArray,
        linearised: FloatArray | None,
        decomposed: FloatArray | None,
    ) -> ConstraintTable:
        """The table with the price of the local model where it gives one, otherwise that of the
        decomposition. At a local optimum a constraint that is at no limit, and that no decomposition prices,
        is worth 0."""
        lower, upper = limits
        shown = LazyNames(NumberedNames("row", (activity.size,))) if names is None else names
        bare = cls(shown, activity, lower, upper, activity, (), size)
        nothing = np.full(activity.size, np.nan)
        local = nothing if linearised is None else linearised
        prices = nothing if decomposed is None else np.where(decomposed == 0.0, np.nan, decomposed)
        binding = bare.binding
        price = np.where(binding & ~np.isnan(local), local, prices)
        source = np.where(binding & ~np.isnan(local), LINEARISED, np.where(np.isnan(prices), "", DECOMPOSED))
        free = ~binding & np.isnan(prices) & (linearised is not None)
        price, source = np.where(free, 0.0, price), np.where(free, SLACK, source)
        return cls(bare.names, activity, lower, upper, price + 0.0, tuple(source.tolist()), size)


class FollowUp(Protocol):
    """Answers questions about a result that need the problem and the options of its solve."""

    def constraints(self) -> ConstraintTable | None:
        """The constraints at the solution; None without time or memory for them."""
        ...

    def solved_again(
        self, result: Result, changes: Mapping[str, Any], options: Mapping[str, Any]
    ) -> tuple[Result, float | None]:
        """The result with other limits, and the change of the objective that the prices expect."""
        ...

    def second_opinion(self, x: FloatArray, asked: Mapping[str, Any]) -> SecondOpinion:
        """The decision as other models see it."""
        ...


@dataclass(frozen=True, eq=False)
class WhatIf:
    """What another limit changes.

    >>> import dovetail as dt, numpy as np
    >>> mip = dt.Mip([-1.0], [[2.0]], [-np.inf], [3.0], upper=9.0, names=["x"], row_names=["budget"])
    >>> print(dt.solve(dt.Problem(mip), log=False).what_if({"budget": 1.0}))
    budget +1: objective -1.5 to -2 (-0.5; by its price -0.5)
      x: 1.5 to 2
    """

    changes: Mapping[str, Any]
    before: Result
    result: Result
    """The result with the other limits."""
    estimate: float | None
    """The change of the objective by the prices; None if a limit has no price."""

    @property
    def change(self) -> float | None:
        """The change of the objective; None if one of the two solves has no solution."""
        if self.before.objective is None or self.result.objective is None:
            return None
        return float(self.result.objective - self.before.objective)

    @cached_property
    def decisions(self) -> dict[str, tuple[float, float]]:
        """The variables that changed, with their values before and after."""
        x, z = self.before.x, self.result.x
        if x is None or z is None:
            return {}
        moved = np.flatnonzero(np.abs(x - z) > TOLERANCE * np.maximum(1.0, np.abs(x)))
        names = self.before.names or LazyNames(NumberedNames("x", (x.size,)))
        return {names[j]: (float(x[j]), float(z[j])) for j in moved.tolist()}

    def __str__(self) -> str:
        asked = ", ".join(f"{name} {_signed(by)}" for name, by in self.changes.items())
        if self.change is None:
            return f"{asked}: {self.result.status.value} ({self.result.message})"
        assert self.before.objective is not None
        guess = "no price" if self.estimate is None else f"by its price {self.estimate:+.6g}"
        if len(self.changes) > 1 and self.estimate is not None:
            guess = f"by their prices {self.estimate:+.6g}"
        doubt = ""
        if any(each.status.value != "optimal" for each in (self.before, self.result)):
            doubt = "; not both are proved optimal"
        first = (
            f"{asked}: objective {self.before.objective:.6g} to {self.result.objective:.6g} "
            f"({self.change:+.6g}; {guess}{doubt})"
        )
        lines = [f"  {name}: {a:.6g} to {b:.6g}" for name, (a, b) in list(self.decisions.items())[:SHOWN]]
        rest = len(self.decisions) - SHOWN
        return "\n".join([first, *lines, *([f"  and {several(rest, 'more')}"] if rest > 0 else [])])

    def __repr__(self) -> str:
        return f"<WhatIf: {str(self).splitlines()[0]}; changed: {listed(list(self.decisions))}>"


def _signed(by: Any) -> str:
    return f"{by:+g}" if isinstance(by, (int, float)) else str(by)

"""What contradicts each other in an infeasible problem: constraints, bounds and predictors."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.core.words import listed, several

MOST_NAMED = 12
"""Number of parts that a message names."""


@dataclass(frozen=True)
class ConflictPart:
    """One constraint, bound or predictor.

    >>> str(ConflictPart("upper bound", "heat", 3.0)), str(ConflictPart("predictor", "net", sample=2))
    ('heat <= 3', 'predictor net (sample 2)')
    """

    kind: str
    """"constraint", "lower bound", "upper bound", "fixed value" or "predictor"."""
    name: str
    """The name of the constraint, variable or predictor."""
    limit: float | None = None
    """The value of a bound."""
    sample: int | None = None
    """The sample of a predictor that has several."""

    def __str__(self) -> str:
        sign = {"lower bound": ">=", "upper bound": "<=", "fixed value": "="}.get(self.kind)
        if sign is not None:
            return f"{self.name} {sign} {self.limit:.6g}"
        named = self.name if self.name.startswith("row[") else f"{self.kind} {self.name}"
        return named if self.sample is None else f"{named} (sample {self.sample})"


@dataclass(frozen=True)
class Conflict:
    """A set of constraints, bounds and predictors that no point satisfies together.

    If it is `minimal`, the set is feasible as soon as any of its parts is left out: a verified point shows
    it. Integers stay integers, and the bounds of a predictor's inputs belong to the predictor. Such a set is
    also called an irreducible infeasible subsystem (IIS).

    >>> import dovetail as dt
    >>> mip = dt.Mip([1.0, 1.0], A=[[1.0, 1.0], [1.0, 0.0]], row_lower=[4.0, 0.0], row_upper=9.0,
    ...              upper=[1.0, 2.0], names=["heat", "flow"], row_names=["demand", "other"])
    >>> result = dt.solve(dt.Problem(mip), log=False)
    >>> result.status.value, str(result.conflict)
    ('infeasible', 'constraint demand, heat <= 1, flow <= 2')
    >>> result.conflict.constraints, result.conflict.minimal
    (['demand'], True)
    """

    parts: tuple[ConflictPart, ...]
    minimal: bool

    @property
    def constraints(self) -> list[str]:
        """The names of the constraints."""
        return [part.name for part in self.parts if part.kind == "constraint"]

    @property
    def bounds(self) -> list[str]:
        """The bounds, as "x <= 3"."""
        return [str(part) for part in self.parts if part.limit is not None]

    @property
    def predictors(self) -> list[str]:
        """The names of the predictors, each once."""
        return [*dict.fromkeys(part.name for part in self.parts if part.kind == "predictor")]

    @property
    def in_words(self) -> str:
        """A sentence for messages."""
        parts = self._named()
        named = ", ".join(parts[:MOST_NAMED])
        more = len(parts) - MOST_NAMED
        named += f" and {several(more, 'more')}" if more > 0 else ""
        inputs = " with the bounds of its inputs" if self.predictors else ""
        size = (
            "" if self.minimal else " (perhaps not all of these: the search for a smallest set did not end)"
        )
        return f"these contradict each other: {named}{inputs}{size}"

    def __str__(self) -> str:
        return ", ".join(self._named()) + ("" if self.minimal else " (perhaps not all of these)")

    def _named(self) -> list[str]:
        """The parts, and the samples of each predictor together."""
        named = [str(part) for part in self.parts if part.sample is None]
        samples: dict[str, list[str]] = {}
        for part in self.parts:
            if part.sample is not None:
                samples.setdefault(part.name, []).append(str(part.sample))
        for name, which in samples.items():
            told = f"sample {which[0]}" if len(which) == 1 else f"samples {listed(which, MOST_NAMED)}"
            named.append(f"predictor {name} ({told})")
        return named

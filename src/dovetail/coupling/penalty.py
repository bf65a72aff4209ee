"""The penalty parameter rho, and the rules that change it.

The theory needs finitely many changes of rho; all rules respect that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

from dovetail.core.options import require_count, require_flags, require_number


@dataclass(frozen=True)
class FixedPenalty:
    """rho stays constant, as the paper's experiments state.

    >>> import dovetail as dt
    >>> dt.DualDecomposition(rho=10.0, penalty=dt.FixedPenalty()).penalty
    FixedPenalty()
    """

    def start(self, rho: float) -> PenaltyState:
        """Begin with `rho`."""
        return PenaltyState(rho, rho)

    def update(self, state: PenaltyState, iteration: int, primal: float, dual: float) -> PenaltyState:
        """No change."""
        return state


@dataclass(frozen=True)
class IncreasingPenalty:
    """The paper's rule: rho grows whenever the primal residual stops decreasing.

    The paper's method section says this; Algorithm 1 says "based on residuals", and a later section also
    lowers rho (`BalancedPenalty`). The paper does not give the factor.

    >>> import dovetail as dt
    >>> rule = dt.IncreasingPenalty(factor=2.0)
    >>> state = rule.update(rule.start(10.0), iteration=1, primal=1.0, dual=0.0)
    >>> rule.update(state, iteration=2, primal=1.0, dual=0.0).rho
    20.0
    """

    factor: float = 2.0
    """The standard factor of multiplier methods; the paper states only "beta > 1"."""
    most_changes: int = 10
    """Up to a thousand times the first rho: integers freeze long before, and the theory needs an end."""

    def __post_init__(self) -> None:
        require_number("IncreasingPenalty: factor", self.factor, above=1.0)
        require_count("IncreasingPenalty: most_changes", self.most_changes, at_least=0)

    def start(self, rho: float) -> PenaltyState:
        """Begin with `rho`."""
        return PenaltyState(rho, rho)

    def update(self, state: PenaltyState, iteration: int, primal: float, dual: float) -> PenaltyState:
        """Raise rho unless the residual fell."""
        if primal < state.primal or state.changes >= self.most_changes:
            return replace(state, primal=primal)
        rho = state.rho * self.factor
        return replace(state, rho=rho, changes=state.changes + 1, changed_at=iteration, primal=primal)


@dataclass(frozen=True)
class BalancedPenalty:
    """Residual balancing: rho grows while copies and variables differ, and shrinks while the copies move
    much.

    rho is multiplied by `factor` if the primal residual exceeds the dual residual by `ratio`, and divided in
    the opposite case, at most every `pause` iterations and `most_changes` times in all, and within `range_`
    of the start. The range is needed because with integers a large rho freezes x at the rounded u. The dual
    residual grows with rho, which makes the rule prefer a small rho; `relative` divides by the first rho, so
    that only a wrong start is corrected.

    >>> import dovetail as dt
    >>> rule = dt.BalancedPenalty(factor=2.0, ratio=10.0)
    >>> rule.update(rule.start(40.0), iteration=5, primal=1.0, dual=0.0).rho
    80.0
    """

    relative: bool = True
    factor: float = 2.0
    """Factor and ratio are those of Boyd et al. (2011), section 3.4.1."""
    ratio: float = 10.0
    pause: int = 5
    """Iterations in which residuals respond to the last change."""
    most_changes: int = 10
    range_: float = 1e4

    def __post_init__(self) -> None:
        require_number("BalancedPenalty: factor", self.factor, above=1.0)
        require_number("BalancedPenalty: ratio", self.ratio, at_least=1.0)
        require_number("BalancedPenalty: range_", self.range_, at_least=1.0)
        require_count("BalancedPenalty: pause", self.pause, at_least=0)
        require_count("BalancedPenalty: most_changes", self.most_changes, at_least=0)
        require_flags("BalancedPenalty", self, "relative")

    def start(self, rho: float) -> PenaltyState:
        """Begin with `rho`."""
        return PenaltyState(rho, rho)

    def update(self, state: PenaltyState, iteration: int, primal: float, dual: float) -> PenaltyState:
        """Double, halve, or keep rho."""
        if state.changes >= self.most_changes or iteration - state.changed_at < self.pause:
            return state
        if self.relative:
            dual = dual / state.first
        if primal > self.ratio * dual:
            rho = state.rho * self.factor
        elif dual > self.ratio * primal:
            rho = state.rho / self.factor
        else:
            return state
        if not state.first / self.range_ <= rho <= state.first * self.range_:
            return state
        return replace(state, rho=rho, changes=state.changes + 1, changed_at=iteration)


@dataclass(frozen=True)
class PenaltyState:
    """rho now and at the start, the number and time of its changes, and the last primal residual."""

    rho: float
    first: float
    changes: int = 0
    changed_at: int = 0
    primal: float = inf


Penalty = FixedPenalty | IncreasingPenalty | BalancedPenalty

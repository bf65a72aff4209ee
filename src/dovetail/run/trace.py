"""The record of a solve, iteration by iteration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from math import isnan
from typing import Any

from dovetail.core.errors import MissingDependencyError
from dovetail.core.words import grid, several
from dovetail.report.gains import Gain

MOST_LISTED = 12
"""Number of iterations in a table for notebooks."""


@dataclass(frozen=True)
class Residual:
    """The distance of one coupling from agreement, in the method's coordinates."""

    block: str
    kind: str
    """"inputs" for u = x, "outputs" for f(u) = y."""
    primal: float
    """Largest |u - x| or |f(u) - y|."""
    dual: float
    """Largest change of the copies since the last iteration, in the same coordinates, times rho."""


@dataclass(frozen=True)
class Row:
    """One iteration. Objectives are in the user's sense; seconds are of this iteration."""

    iteration: int
    objective: float
    """The objective of the completed MIP iterate; NaN if the iterate was refused."""
    incumbent: float
    """The objective of the best verified solution so far; NaN without one."""
    source: str
    """The source of a better incumbent in this iteration; "" without one."""
    rho: float
    lagrangian: float
    """The augmented Lagrangian L(x_k, u_k, lambda_{k-1}) before the dual update (minimised); for a method
    without multipliers the function that it minimises, for big-M SCIP's objective."""
    merit: float
    """The same function after the dual update, L(x_k, u_k, lambda_k): the merit of the paper's proof."""
    mip_seconds: float
    nn_seconds: float
    check_seconds: float
    elapsed: float
    exact: bool
    """False if the MIP step ended at a limit."""
    residuals: tuple[Residual, ...] = field(default=())
    bound: float | None = None
    """The best proven bound so far; None without one."""
    proof: str = ""
    """The source of a better bound in this iteration; "" without one."""
    part: str = ""
    """The part of the solve: a part of the default method, or the method's name."""
    evaluations: int = 0
    """Samples evaluated by predictors since the solve began."""

    @property
    def primal(self) -> float:
        """Largest primal residual of all couplings."""
        return max((residual.primal for residual in self.residuals), default=0.0)

    @property
    def dual(self) -> float:
        """Largest dual residual of all couplings."""
        return max((residual.dual for residual in self.residuals), default=0.0)

    def flat(self) -> dict[str, Any]:
        """The row as one flat record: residuals become columns like ``primal[net.inputs]``."""
        record = asdict(self)
        record.pop("residuals")
        record.update(primal=self.primal, dual=self.dual)
        for residual in self.residuals:
            label = f"{residual.block}.{residual.kind}"
            record[f"primal[{label}]"] = residual.primal
            record[f"dual[{label}]"] = residual.dual
        return record


UNSEEN = 1.0 / 500.0
"""Fraction of the time since the start: of two improvements closer than that only the later one is kept,
because no chart shows both. Branch and bound may raise its bound a thousand times a second."""


def add_gain(gains: list[Gain], gain: Gain) -> None:
    """Record an improvement; it replaces the last one if a chart could not show both."""
    if len(gains) > 1:
        before, last = gains[-2:]
        apart = last.seconds - before.seconds > UNSEEN * last.seconds
        if not apart and last.source == gain.source:
            gains.pop()
    gains.append(gain)


@dataclass(frozen=True)
class PartTurn:
    """One part of the solve at work, from one moment to another, in seconds since the solve began."""

    part: str
    begin: float
    end: float


@dataclass(repr=False)
class Trace:
    """The iterations of one solve, in order, and when incumbent and bound improved.

    >>> import dovetail as dt
    >>> problem = dt.Problem(dt.Mip(cost=[0.0, 1.0], lower=0.0, upper=[3.0, 9.0]))
    >>> block = problem.add_predictor(lambda X: (X - 1.0) ** 2, inputs=[0], outputs=[1])
    >>> trace = dt.solve(problem, dt.DualDecomposition(iterations=3), log=False).trace
    >>> len(trace), trace.column("iteration"), trace[0].rho
    (3, [1, 2, 3], 40.0)
    """

    rows: list[Row] = field(default_factory=list)
    incumbents: list[Gain] = field(default_factory=list)
    """Every improvement of the incumbent."""
    bounds: list[Gain] = field(default_factory=list)
    """Every improvement of the proven bound."""
    turns: list[PartTurn] = field(default_factory=list)
    """Which part worked when; turns of one part that follow each other are one."""

    def add_turn(self, part: str, begin: float, end: float) -> None:
        """Put a turn on record."""
        if self.turns and self.turns[-1].part == part:
            begin = self.turns.pop().begin
        self.turns.append(PartTurn(part, begin, end))

    def without_gains(self) -> Trace:
        """The trace of a search without an objective: incumbents and bounds mean nothing."""
        return Trace(self.rows, turns=self.turns)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __getitem__(self, k: int) -> Row:
        return self.rows[k]

    def __repr__(self) -> str:
        if not self.rows:
            return "<Trace: no iterations>"
        last = self.rows[-1]
        bound = "" if last.bound is None else f", bound {last.bound:.6g}"
        best = "no solution" if isnan(last.incumbent) else f"incumbent {last.incumbent:.6g}"
        return f"<Trace: {several(len(self), 'iteration')}, {last.elapsed:.2f} s, {best}{bound}>"

    def _repr_html_(self) -> str:
        """The iterations with improvements; only the last ones if there are many."""
        gains = [row for row in self.rows if row.source or row.proof] or self.rows[-1:]
        cells = [
            (
                str(row.iteration),
                f"{row.elapsed:.2f}",
                f"{row.incumbent:.6g}",
                "" if row.bound is None else f"{row.bound:.6g}",
                " ".join(filter(None, (row.source, row.proof))),
            )
            for row in gains[-MOST_LISTED:]
        ]
        header = ("iteration", "seconds", "incumbent", "bound", "found by")
        return grid(repr(self).strip("<>"), header, cells)

    def column(self, name: str) -> list[Any]:
        """One field of every iteration."""
        return [getattr(row, name) for row in self.rows]

    def to_frame(self) -> Any:
        """The trace as a pandas DataFrame."""
        return frame("Trace.to_frame", [row.flat() for row in self.rows])


def frame(what: str, records: list[dict[str, Any]] | dict[str, Any]) -> Any:
    """One row per record, or the columns of a dictionary; `what` names the call that needs pandas."""
    try:
        import pandas as pd
    except ImportError:
        raise MissingDependencyError(f"{what} needs pandas: pip install pandas.") from None
    return pd.DataFrame(records)

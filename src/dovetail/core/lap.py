"""One iteration's share of the stopwatch, and the row of the trace it becomes."""

from __future__ import annotations

from dovetail.core.search import Search
from dovetail.core.trace import Residual, Row


class Lap:
    """Begun with an iteration, asked for its row at the end."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self._before = {name: search.stopwatch.read(name) for name in ("engine", "nn", "door")}
        self._incumbent = search.incumbent.x

    def row(
        self,
        iteration: int,
        objective: float,
        *,
        lagrangian: float,
        merit: float,
        residuals: tuple[Residual, ...],
        rho: float = 0.0,
        exact: bool = True,
    ) -> Row:
        """The iteration as a row: what the method says of it, what it found, and how long it took."""
        search, incumbent = self._search, self._search.incumbent
        spent = {name: search.stopwatch.read(name) - t for name, t in self._before.items()}
        return Row(
            iteration=iteration,
            objective=objective,
            incumbent=incumbent.objective,
            source=incumbent.source if incumbent.x is not self._incumbent else "",
            rho=rho,
            lagrangian=lagrangian,
            merit=merit,
            mip_seconds=spent["engine"],
            nn_seconds=spent["nn"],
            door_seconds=spent["door"],
            elapsed=search.watch.elapsed,
            exact=exact,
            residuals=residuals,
        )

    def tell(
        self,
        value: float,
        objective: float = float("nan"),
        *,
        residuals: tuple[Residual, ...] = (),
        exact: bool = True,
    ) -> Row:
        """Record the iteration of a method without multipliers, which thinks its point is worth `value`."""
        search = self._search
        row = self.row(
            len(search.watch.trace) + 1,
            objective,
            lagrangian=value,
            merit=value,
            residuals=residuals,
            exact=exact,
        )
        search.watch.iteration(row, search.incumbent.x)
        return row

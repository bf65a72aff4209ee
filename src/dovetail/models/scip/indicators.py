"""Indicator constraints as SCIP has them: a row with a slack, which is 0 if the binary is active."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dovetail.core.arrays import BoolArray, IntArray
from dovetail.core.errors import ModelError
from dovetail.core.foreign import Slack
from dovetail.core.indicator import Indicator
from dovetail.models.scip.columns import GONE, ScipColumns
from dovetail.models.scip.rows import Constraints, LinearRows, removed


@dataclass(frozen=True, eq=False)
class SlackIndicator:
    """If column `binary` is `active`, then column `slack` of a row is 0."""

    name: str
    binary: int
    active: int
    slack: int
    row: int
    """GONE where it is not in the model any more."""

    def owns_its_slack(self, columns: ScipColumns, rows: LinearRows, used: IntArray) -> bool:
        """Whether nothing but this row has to do with the slack, and only in one direction."""
        i, j = self.row, self.slack
        if i == GONE or used[j] != 1 or columns.cost[j] != 0.0:
            return False
        indices, data = rows.entries(i)
        falls = bool(np.any(data[indices == j] < 0.0))
        return falls and (columns.lower[j], columns.upper[j], rows.lower[i]) == (0.0, np.inf, -np.inf)

    def indicator(self, rows: LinearRows, kept: BoolArray, place: IntArray) -> Indicator:
        """The row without its slack, or where the slack is kept, that it is 0; columns by their `place`."""
        binary = int(place[self.binary])
        if kept[self.slack]:
            return Indicator(binary, self.active, [int(place[self.slack])], [1.0], -np.inf, 0.0, self.name)
        indices, data = rows.entries(self.row)
        own = indices != self.slack
        limit = float(rows.upper[self.row])
        return Indicator(binary, self.active, place[indices[own]], data[own], -np.inf, limit, self.name)

    def left_out(self, columns: ScipColumns, rows: LinearRows, place: IntArray) -> Slack:
        """The slack of a row that is told without it: as small as its row lets it be."""
        indices, data = rows.entries(self.row)
        own, falls = indices != self.slack, -float(data[indices == self.slack][0])
        return Slack(
            columns.keys[self.slack],
            columns.variables[self.slack].name,
            place[indices[own]].tolist(),
            (data[own] / falls).tolist(),
            -float(rows.upper[self.row]) / falls,
            0.0,
        )


def slack_indicators(model: Any, columns: ScipColumns, constraints: Constraints) -> list[SlackIndicator]:
    """All of a model."""
    slacks = [model.getSlackVarIndicator(constraint) for constraint in constraints.indicators]
    firsts = [model.getConsVars(constraint)[0] for constraint in constraints.indicators]
    slack, _ = columns.find(model, slacks)
    binary, negated = columns.find(model, firsts)
    result = []
    for k, constraint in enumerate(constraints.indicators):
        if slack[k] == binary[k]:
            raise ModelError(
                f"the indicator constraint {constraint.name} has no binary variable; give one, as binvar."
            )
        if GONE in (slack[k], binary[k]):
            raise removed(constraint.name)
        row = model.getLinearConsIndicator(constraint)
        row = GONE if row is None else constraints.row_at.get(row.ptr(), GONE)
        active = 0 if negated[k] else 1
        result.append(SlackIndicator(constraint.name, int(binary[k]), active, int(slack[k]), row))
    return result

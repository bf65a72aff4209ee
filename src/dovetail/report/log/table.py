"""The table of the log: one line for each state of a solve, in columns that fit the width.

A bound that ignores the predictors is printed across the columns of bound and gap, because a gap to this
bound says nothing about the solution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dovetail.report.gains import ROUNDING, relative_gap
from dovetail.report.log.layout import cells, count, cut, harmless, number

LARGE = 10.0
"""Larger gaps are shown as "large"."""
SMALL = 1e-4
"""Smaller gaps do not show with two decimals."""


@dataclass(frozen=True)
class State:
    """A solve at one moment; numbers in the user's sense."""

    elapsed: float
    part: str
    """The part at work."""
    incumbent: float
    """Objective of the best verified solution; NaN without one."""
    bound: float | None
    rows_only: bool
    """Whether the bound ignores the predictors."""
    evaluations: int
    iteration: int = 0
    residual: float | None = None
    rho: float | None = None
    exact: bool = True
    """False if the MIP step ended at a limit."""


@dataclass(frozen=True)
class LogColumn:
    """One column: its title, widths and text."""

    title: str
    wide: int
    narrow: int
    """The width on narrow terminals; 0: the column is left out."""
    text: Callable[[State, int], str]
    left: bool = False
    short: str = ""
    """The title on narrow terminals."""

    def heading(self, width: int) -> str:
        """The title, or the short one if it does not fit."""
        return self.title if len(self.title) <= width else self.short

    def cell(self, text: str, width: int) -> str:
        """The text, padded."""
        text = cut(text, width)
        pad = " " * (width - cells(text))
        return text + pad if self.left else pad + text


def gap(state: State) -> str:
    """The gap in per cent of the incumbent."""
    if state.bound is None or state.incumbent != state.incumbent or state.rows_only:
        return "-"
    return percent(relative_gap(state.incumbent, state.bound))


def percent(share: float) -> str:
    """A gap with about three digits."""
    if share >= LARGE:
        return "large"
    if share < SMALL:
        return "0 %" if share <= ROUNDING else "<0.01 %"
    return f"{100 * share:.{2 if share < 0.1 else 1 if share < 1.0 else 0}f} %"


def rows_only(bound: float | None, width: int) -> str:
    """The text for a bound that ignores the predictors."""
    lead = "MIP only: "
    return lead + number(bound, width - len(lead))


_TIME = LogColumn("time", 7, 6, lambda state, width: f"{state.elapsed:.1f}")
_INCUMBENT = LogColumn("incumbent", 12, 10, lambda state, width: number(state.incumbent, width))
_BOUND = LogColumn("bound", 12, 10, lambda state, width: number(state.bound, width))
_GAP = LogColumn("gap", 8, 7, lambda state, width: gap(state))
_EVALUATIONS = LogColumn("evaluations", 11, 0, lambda state, width: count(state.evaluations, width))

PARTS = (
    _TIME,
    LogColumn("part", 20, 11, lambda state, width: harmless(state.part), left=True),
    _INCUMBENT,
    _BOUND,
    _GAP,
    LogColumn("evaluations", 13, 10, lambda state, width: count(state.evaluations, width), short="evaluated"),
)
"""The columns of most methods."""
RESIDUALS = (
    _TIME,
    LogColumn("round", 5, 5, lambda state, width: f"{state.iteration}{'' if state.exact else '*'}"),
    _INCUMBENT,
    _BOUND,
    _GAP,
    LogColumn("residual", 8, 8, lambda state, width: _power(state.residual)),
    LogColumn("rho", 8, 7, lambda state, width: _power(state.rho or None)),
    _EVALUATIONS,
)
"""The columns of Algorithm 1 and of other methods with residuals."""


def _power(value: float | None) -> str:
    return "-" if value is None else f"{value:.1e}"


def _fitting(columns: tuple[LogColumn, ...], width: int) -> list[tuple[LogColumn, int]]:
    """The columns with their widths: wide, otherwise narrow, otherwise as many as fit."""
    wide = [(column, column.wide) for column in columns]
    if sum(size + 1 for _, size in wide) - 1 <= width:
        return wide
    narrow = [(column, column.narrow) for column in columns if column.narrow]
    while len(narrow) > 1 and sum(size + 1 for _, size in narrow) - 1 > width:
        narrow.pop()
    return narrow


def head(columns: tuple[LogColumn, ...], width: int) -> str:
    """The line of titles."""
    fitting = _fitting(columns, width)
    return " ".join(column.cell(column.heading(size), size) for column, size in fitting).rstrip()


def line(columns: tuple[LogColumn, ...], state: State, width: int) -> str:
    """The line of a state."""
    texts, skipped = list[str](), False
    fitting = _fitting(columns, width)
    for (column, size), (_, following) in zip(fitting, [*fitting[1:], (None, 0)], strict=True):
        if skipped:
            skipped = False
        elif column is _BOUND and state.rows_only and state.bound is not None:
            both = size + 1 + following if following else size  # across the gap, which there is none of
            texts.append(column.cell(rows_only(state.bound, both), both))
            skipped = following > 0
        else:
            texts.append(column.cell(column.text(state, size), size))
    return " ".join(texts).rstrip()

"""The rows of the log: one state of a solve on one line, in columns that fit the width.

A bound that has not seen the networks is printed as such, across the columns of bound and gap: the gap
to it says nothing about the point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dovetail.report.gains import ROUNDING, relative_gap
from dovetail.report.log.layout import cells, count, cut, harmless, number

LARGE = 10.0
"""A gap that is no measure of anything any more."""
SMALL = 1e-4
"""A gap that two digits after the point do not show."""


@dataclass(frozen=True)
class State:
    """A solve at one moment; numbers in the user's sense."""

    elapsed: float
    part: str
    """What is at work."""
    incumbent: float
    """Of the best verified point; NaN while there is none."""
    bound: float | None
    rows_only: bool
    """Whether the bound is one of the rows, bounds and integers alone."""
    evaluations: int
    iteration: int = 0
    residual: float | None = None
    rho: float | None = None
    exact: bool = True
    """False where the MIP step ended at a limit."""


@dataclass(frozen=True)
class LogColumn:
    """One column: its title, its cells where there is room, and where there is little."""

    title: str
    wide: int
    narrow: int
    """0: it is left out."""
    text: Callable[[State, int], str]
    left: bool = False
    short: str = ""
    """The title where there is little room."""

    def heading(self, width: int) -> str:
        """The title, or the short one."""
        return self.title if len(self.title) <= width else self.short

    def cell(self, text: str, width: int) -> str:
        """The text, padded."""
        text = cut(text, width)
        pad = " " * (width - cells(text))
        return text + pad if self.left else pad + text


def gap(state: State) -> str:
    """How far the bound is from the best point, in per cent of it."""
    if state.bound is None or state.incumbent != state.incumbent or state.rows_only:
        return "-"
    return percent(relative_gap(state.incumbent, state.bound))


def percent(share: float) -> str:
    """A gap with three digits or so."""
    if share >= LARGE:
        return "large"
    if share < SMALL:
        return "0 %" if share <= ROUNDING else "<0.01 %"
    return f"{100 * share:.{2 if share < 0.1 else 1 if share < 1.0 else 0}f} %"


def rows_only(bound: float | None, width: int) -> str:
    """A bound that no network has a part in."""
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
"""Of most methods."""
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
"""Of Algorithm 1, and of the other methods that close a residual."""


def _power(value: float | None) -> str:
    return "-" if value is None else f"{value:.1e}"


def _fitting(columns: tuple[LogColumn, ...], width: int) -> list[tuple[LogColumn, int]]:
    """The columns with their cells: wide, else narrow, else as many as there is room for."""
    wide = [(column, column.wide) for column in columns]
    if sum(size + 1 for _, size in wide) - 1 <= width:
        return wide
    narrow = [(column, column.narrow) for column in columns if column.narrow]
    while len(narrow) > 1 and sum(size + 1 for _, size in narrow) - 1 > width:
        narrow.pop()
    return narrow


def head(columns: tuple[LogColumn, ...], width: int) -> str:
    """The titles."""
    fitting = _fitting(columns, width)
    return " ".join(column.cell(column.heading(size), size) for column, size in fitting).rstrip()


def line(columns: tuple[LogColumn, ...], state: State, width: int) -> str:
    """The state."""
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

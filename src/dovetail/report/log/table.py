"""The table of the log: one line for each state of a solve, in columns that fit the width.

A bound that ignores the predictors is printed across the columns of bound and gap, because a gap to this
bound says nothing about the solution.

Text in lines of limited width, safe for terminals.

Names may come from files of strangers. Escape sequences, line breaks, marks that change the direction of
writing and all other invisible characters become a question mark, so that no name can colour a terminal,
forge a line or hide a part of one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from rich.cells import cell_len, chop_cells

from dovetail.report.gains import ROUNDING, relative_gap

HIDDEN = "?"
"""Replaces an invisible character."""
UNIT, GLUE = re.compile(r"(?<=\d) (?=[%s]\b|%)"), "\u00a0"
"""Keeps a number on the line of its unit."""
CUT = ".."
"""Marks the end of a shortened text."""


def harmless(text: str) -> str:
    """The text with visible characters and spaces only."""
    return text if text.isprintable() else "".join(c if c.isprintable() else HIDDEN for c in text)


def cells(text: str) -> int:
    """The width of a text on a terminal: some characters take two columns, some none."""
    return cell_len(text)


def cut(text: str, width: int) -> str:
    """The text, shortened to a width."""
    if cells(text) <= width:
        return text
    return "".join(chop_cells(text, max(width - len(CUT), 1))[:1]) + CUT[: max(width - 1, 0)]


def whole_words(words: str, width: int) -> str:
    """As many words, separated by two spaces, as fit; the first word may be shortened."""
    kept, *others = words.split("  ")
    for word in others:
        if cells(f"{kept}  {word}") > width:
            break
        kept = f"{kept}  {word}"
    return cut(kept, width)


def wrapped(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    """Lines of at most `width` columns: `first` begins the first line, `rest` the others."""
    lines, line, empty = list[str](), first, True
    for word in UNIT.sub(GLUE, harmless(text)).split(" "):
        joined = line + word if empty else f"{line} {word}"
        if not empty and cells(joined) > width:
            lines.append(line)
            joined = rest + word
        while cells(joined) > width:  # a word that is longer than a line, such as a path
            lead = first if not lines else rest
            head, *more = chop_cells(joined, max(width, len(lead) + 2))
            lines.append(head)
            joined = rest + "".join(more)
        line, empty = joined, False
    return [made.replace(GLUE, " ") for made in (*lines, line.rstrip())]


def fact(label: str, text: str, width: int) -> list[str]:
    """A labelled text: the label at the left, all lines of the text beside it."""
    return wrapped(text, width, f"{label:<{LABEL}}", " " * LABEL)


LABEL = 12
"""Width of the labels, including the space after them."""


def number(value: float | None, width: int = 12) -> str:
    """A number with six digits, or fewer if there is no room; a dash without a number."""
    if value is None or value != value or value in (float("inf"), float("-inf")):
        return "-"
    for digits in (6, 5, 4, 3, 2):
        text = f"{value + 0.0:.{digits}g}"
        if len(text) <= width:
            break
    return text


def count(amount: int, width: int = 11) -> str:
    """A count with commas, in thousands or millions if there is no room."""
    text = f"{amount:,}"
    for unit, name in ((1e3, "k"), (1e6, "M"), (1e9, "G")):
        if len(text) <= width:
            break
        text = f"{amount / unit:,.1f}{name}"
    return text


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
            both = size + 1 + following if following else size  # across the gap column, which is empty
            texts.append(column.cell(rows_only(state.bound, both), both))
            skipped = following > 0
        else:
            texts.append(column.cell(column.text(state, size), size))
    return " ".join(texts).rstrip()

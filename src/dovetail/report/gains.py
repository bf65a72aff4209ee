"""Improvements of incumbent and bound, the gap between them, and the names of the methods that found them.

The log, the page and the reference of `Result` use these names. Methods give a short source with each
solution and each bound. The unknown source of a user's own method is printed unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass

HAIR = 1e-9
"""An objective and a bound that differ by less are equal (see `run.gap`), also near 0."""
SMALLEST = 1e-12
"""The denominator of relative quantities if the objective is 0."""
LARGE = 10.0
"""Larger gaps are not shown as a percentage."""
ROUNDING = 1e-9
"""Smaller gaps are shown as 0 %. Larger gaps are shown even if they are small enough for `optimal`, so that
it is clear why a search with a gap of 0 % continued."""


@dataclass(frozen=True)
class Gain:
    """An improvement of incumbent or bound: when, its value in the user's sense, and its source."""

    seconds: float
    value: float
    source: str


def gap_text(gap: float) -> str:
    """A gap in messages, the summary of the log and the page: three digits of a percentage."""
    if gap <= ROUNDING:
        return "0 %"
    return f"{100 * gap:.3g} %" if gap < LARGE else f"{gap:,.0f} times the objective"


def relative_gap(objective: float, bound: float) -> float:
    """|objective - bound| / |objective|; 0 if both are equal."""
    apart = abs(objective - bound)
    return 0.0 if apart <= HAIR else apart / max(abs(objective), SMALLEST)


ROWS_ONLY = ("host", "box")
"""Sources of bounds that ignore the predictors."""

FOUND = {
    "start": "the start that was given",
    "host": "the MIP without predictors, outputs computed afterwards",
    "concurrent": "a concurrent solve with another seed",
    "x": "the method's own iterate",
    "u": "the networks' copies, rounded",
    "probe": "a probe around the middle of the boxes",
    "cheapest": "a descent from the best point of the LP without predictors",
    "least-activity": "a descent from the point with the least activity",
    "random": "a descent from a random start",
    "near": "a descent from near the incumbent",
    "relaxed": "a descent with the integers relaxed",
    "rens": "a MIP over the integers that came out fractional",
    "lns": "a large neighbourhood of the incumbent",
    "switch": "moves of single integers",
    "beside": "a descent over the other variables, integers fixed",
    "greedy": "a greedy choice of columns",
    "master": "a MIP over the columns",
    "polish": "a descent from the chosen columns",
    "templates": "one priced column for each block",
    "nodes": "a node of branch and bound",
    "cells": "a descent over cells of trees",
    "exact": "the exact MIP",
    "tables": "the exact MIP of tables",
    "splits": "the exact MIP of the trees' splits",
    "quadratic": "a MIP with quadratic curves",
    "scip": "SCIP",
}
"""Sources of solutions in words."""

PROVED = {
    "host": "MIP only, predictors ignored",
    "box": "variable bounds only, predictors ignored",
    "nodes": "branch and bound over variables, neurons and thresholds of trees",
    "planes": "an LP with planes of the networks on cells",
    "prices": "prices on shared constraints, each block bounded",
    "tightening": "bound tightening: no better solution exists",
    "exact": "the exact MIP",
    "tables": "the exact MIP of tables",
    "splits": "the exact MIP of the trees' splits",
    "tangents": "tangents of quadratic functions",
    "columns": "boxes of cells of trees as columns",
    "scip": "SCIP",
    "concurrent": "a concurrent solve",
}
"""Sources of bounds in words."""


ENDED = {
    "proved": "with a proof",
    "target": "at the target",
    "agreed": "when the copies agreed with the variables",
    "time": "at the time limit",
    "memory": "at the memory limit",
    "iterations": "after all iterations",
    "evaluations": "at the limit on evaluations of a predictor",
    "interrupt": "by Ctrl-C or SIGTERM",
    "stalled": "when no part found an improvement any more",
    "callback": "by the callback",
    "error": "by an error",
}
"""The words after "ended", by stop reason."""


def found_by(source: str) -> str:
    """The source of a solution in words."""
    return FOUND.get(source, source)


def proved_by(source: str) -> str:
    """The source of a bound in words."""
    return PROVED.get(source, source)

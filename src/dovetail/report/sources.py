"""Who finds points and who proves bounds, in words: the log, the page and docs/log.md say it like this.

Methods give each point that they offer, and each bound that they prove, a short source. A source that is
not here, of a method of somebody else's, stands for itself.
"""

from __future__ import annotations

ROWS_ONLY = ("host", "box")
"""Sources of bounds that no network has a part in: rows, bounds and integers alone prove them."""

FOUND = {
    "start": "the start that was given",
    "host": "the rows alone, outputs predicted afterwards",
    "concurrent": "a concurrent solve with another seed",
    "x": "the method's own iterate",
    "u": "the networks' copies, rounded",
    "probe": "a probe around the middle of the boxes",
    "cheapest": "a descent from the cheapest point of the rows",
    "least-activity": "a descent from the point that moves least",
    "random": "a descent from a random start",
    "near": "a descent from near the best point",
    "relaxed": "a descent with the integers relaxed",
    "rens": "a MIP over the integers that came out fractional",
    "lns": "a large neighbourhood of the best point",
    "switch": "moves of single integers",
    "beside": "a descent of the other variables, integers held",
    "greedy": "a greedy choice of columns",
    "master": "a MIP over the columns",
    "polish": "a descent from the chosen columns",
    "templates": "one priced column for each block",
    "boxes": "a box of input branching",
    "nodes": "a node of branch and bound",
    "cells": "a descent over cells of trees",
    "exact": "the exact MIP",
    "tables": "the exact MIP of tables",
    "splits": "the exact MIP of the trees' splits",
    "quadratic": "a MIP with quadratic curves",
    "scip": "SCIP",
}
"""Sources of points."""

PROVED = {
    "host": "rows only, no network seen",
    "box": "bounds only, no network seen",
    "boxes": "input branching",
    "nodes": "branch and bound over columns, neurons and cuts of trees",
    "planes": "planes over cells, in an LP",
    "prices": "prices, blocks bounded one by one",
    "tightening": "boxes of better points, which are empty",
    "exact": "the exact MIP",
    "tables": "the exact MIP of tables",
    "splits": "the exact MIP of the trees' splits",
    "tangents": "planes along quadratic curves",
    "columns": "boxes of cells of trees, as columns",
    "scip": "SCIP",
}
"""Sources of bounds."""


ENDED = {
    "proved": "with a proof",
    "target": "at the target",
    "agreed": "when both blocks agreed",
    "time": "at the time limit",
    "memory": "at the memory limit",
    "iterations": "after all iterations",
    "evaluations": "when a predictor could not be asked any more",
    "interrupt": "by an interrupt",
    "stalled": "when nothing brought more",
    "callback": "by the callback",
    "error": "by an error",
}
"""What follows "ended", by stop reason."""


def found_by(source: str) -> str:
    """Where a point came from."""
    return FOUND.get(source, source)


def proved_by(source: str) -> str:
    """What a bound rests on."""
    return PROVED.get(source, source)

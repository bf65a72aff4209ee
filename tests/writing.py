"""Programs that grow by column and by row, and the ways to write a column with given values."""

from __future__ import annotations

import itertools

import numpy as np
import torch

import dovetail as dt

INF = np.inf
FORMS = ("integer", "all", "all but the least", "steps", "digits", "index")
"""Of a column with given values; "integer" and "digits" where these are equally far apart."""


class Writing:
    """A program that grows by column and by row."""

    def __init__(self):
        self.cost, self.lower, self.upper, self.integer, self.rows = [], [], [], [], []

    def column(self, lower, upper, cost=0.0, *, integer=False):
        """Append a column; its place."""
        self.cost.append(cost)
        self.lower.append(lower)
        self.upper.append(upper)
        self.integer.append(integer)
        return len(self.cost) - 1

    def row(self, entries, lower, upper):
        """Append a row, with entries by column."""
        self.rows.append((entries, lower, upper))

    def problem(self):
        """The problem, to be minimised, without predictors."""
        A = np.zeros((len(self.rows), len(self.cost)))
        for i, (entries, _, _) in enumerate(self.rows):
            A[i, list(entries)] = list(entries.values())
        sides = ([row[k] for row in self.rows] for k in (1, 2))
        return dt.Problem(dt.Mip(self.cost, A, *sides, self.lower, self.upper, self.integer))


def net_of(inputs, seed, *, width=10, scale=1.0):
    """A network with two layers and one output."""
    torch.manual_seed(seed)
    parts = [torch.nn.Linear(inputs, width), torch.nn.ReLU(), torch.nn.Linear(width, width), torch.nn.ReLU()]
    net = torch.nn.Sequential(*parts, torch.nn.Linear(width, 1)).double()
    with torch.no_grad():
        net[0].weight *= scale
        net[2].weight *= 2
    return net


def by_levels(w, levels, form):
    """A column with one of these values, the least first; its place."""
    x, count = w.column(levels[0], levels[-1]), len(levels)
    steps = np.diff(levels).tolist()
    binaries = [w.column(0, 1, integer=True) for _ in _worth(count, form)]
    if form in ("all", "index"):
        w.row(dict.fromkeys(binaries, 1.0), 1.0, 1.0)
        w.row({x: 1.0} | {b: -level for b, level in zip(binaries, levels, strict=True)}, 0.0, 0.0)
    elif form == "all but the least":
        w.row(dict.fromkeys(binaries, 1.0), -INF, 1.0)
        more = {b: levels[0] - level for b, level in zip(binaries, levels[1:], strict=True)}
        w.row({x: 1.0} | more, levels[0], levels[0])
    elif form == "steps":
        w.row({x: 1.0} | {b: -step for b, step in zip(binaries, steps, strict=True)}, levels[0], levels[0])
        for one, two in itertools.pairwise(binaries):
            w.row({one: 1.0, two: -1.0}, 0.0, INF)
    elif form == "digits":
        worth = zip(binaries, _worth(count, form), strict=True)
        w.row({x: 1.0} | {b: -steps[0] * k for b, k in worth}, levels[0], levels[0])
    else:
        n = w.column(0, count - 1, integer=True)
        w.row({x: 1.0, n: -steps[0]}, levels[0], levels[0])
    if form == "index":
        k = w.column(0, count - 1, integer=True)
        w.row({k: 1.0} | {b: -float(i) for i, b in enumerate(binaries)}, 0.0, 0.0)
    return x


def _worth(count, form):
    """Of the binaries: how many steps each of them is."""
    if form == "integer":
        return []
    if form != "digits":
        return [1] * (count if form in ("all", "index") else count - 1)
    worth = []
    while sum(worth) < count - 1:
        worth.append(min(2 ** len(worth), count - 1 - sum(worth)))
    return worth

"""Recycle: a reactor, a separator and a purifier in a loop, closed by a constraint.

    max  price of product - feed - steam - catalyst
    s.t. out = reactor(feed, back, catalyst),   product = separator(out, stages),
         rest = purifier(out, steam),   back = rest                        the loop
         product >= what the customers want;   lines share feed and steam

No predictor may read its own output, so the loop is closed by a row: the recycled amount is a variable that
the reactor reads. Feasible: with middle settings the purifier returns more than an empty loop holds and less
than a full one, networks are continuous, and for some amount between the two the loop returns exactly this
amount. This amount is found by bisection, and the limits are set according to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import dovetail as dt
from dovetail_study.problems.host import Host
from dovetail_study.zoo.learners import by_size, network, values

FEED, FULL = (2.0, 6.0), 5.0
"""Bounds of the feed, and the most that can come back."""
CATALYST, STAGES, STEAM = 4, 5, (0.0, 2.0)
"""Whole units of catalyst, whole stages of the separator, bounds of the steam."""


@dataclass(frozen=True)
class _Units:
    """The networks of one line."""

    reactor: Any
    separator: Any
    purifier: Any

    def back(self, before: float) -> tuple[float, float]:
        """The recycled amount and the product with middle settings, after the amount `before` was
        recycled."""
        out = values(self.reactor, np.array([[4.0, before, 2.0]]))[0]
        product = values(self.separator, np.array([[out, 3.0]]))[0]
        return values(self.purifier, np.array([[out, 1.0]]))[0], product


def recycle(size: int, seed: int) -> dt.Problem:
    """One line, or several that share feed and steam."""
    rng = np.random.default_rng(seed)
    lines = by_size(size, 1, 2, 5)
    units = [_trained(rng, size, seed + 10 * k) for k in range(lines)]
    wanted = 0.95 * sum(_settled(line) for line in units)

    host = Host("max")
    columns = {
        name: [host.variable(f"{name}[{k}]", low, high, cost=cost, integer=whole) for k in range(lines)]
        for name, low, high, cost, whole in (
            ("feed", *FEED, -0.5, False),
            ("back", 0.0, FULL, 0.0, False),
            ("catalyst", 0, CATALYST, -0.15, True),
            ("stages", 1, STAGES, -0.1, True),
            ("steam", *STEAM, -0.3, False),
            ("out", 0.0, 20.0, 0.0, False),
            ("product", 0.0, 20.0, 1.0, False),
            ("rest", 0.0, FULL, 0.0, False),
        )
    }
    for k in range(lines):
        host.equal(f"loop[{k}]", columns["back"][k], [(1.0, columns["rest"][k])])
    host.row("customers", [(1.0, j) for j in columns["product"]], lower=wanted)
    host.row("feed in all", [(1.0, j) for j in columns["feed"]], upper=4.5 * lines)
    host.row("steam in all", [(1.0, j) for j in columns["steam"]], upper=1.2 * lines)
    problem = host.problem()
    for k, line in enumerate(units):
        feed, back, catalyst, stages, steam, out, product, rest = (columns[name][k] for name in columns)
        problem.add_predictor(line.reactor, [feed, back, catalyst], [out], name=f"reactor[{k}]")
        problem.add_predictor(line.separator, [out, stages], [product], name=f"separator[{k}]")
        problem.add_predictor(line.purifier, [out, steam], [rest], name=f"purifier[{k}]")
    return problem


def _trained(rng: np.random.Generator, size: int, seed: int) -> _Units:
    """Conversion grows with the catalyst, yield with the stages, and steam drives off what comes back."""
    n, skill = 300, rng.uniform(0.9, 1.1, 3)
    feed, back = rng.uniform(*FEED, n), rng.uniform(0.0, FULL, n)
    catalyst, stages, steam = (
        rng.integers(0, CATALYST + 1, n),
        rng.integers(1, STAGES + 1, n),
        rng.uniform(*STEAM, n),
    )
    noise = rng.normal(0.0, 0.03, (3, n))
    out = (feed + 0.7 * back) * (0.55 + 0.1 * skill[0] * np.sqrt(catalyst)) + 0.4 + noise[0]
    product = out * (1.0 - np.exp(-0.45 * skill[1] * stages)) * (1.0 - 0.015 * out) + noise[1]
    rest = 0.12 + 0.3 * skill[2] * out / (1.0 + 0.5 * steam) + noise[2]
    return _Units(
        network(np.column_stack([feed, back, catalyst]), out, size, seed),
        network(np.column_stack([out, stages]), product, size, seed + 1),
        network(np.column_stack([out, steam]), rest, size, seed + 2),
    )


def _settled(line: _Units) -> float:
    """The product at which the recycled amount does not change, with middle settings."""
    low, high = 0.0, FULL
    assert line.back(low)[0] > low, "more comes back than an empty loop holds"
    assert line.back(high)[0] < high, "less comes back than a full loop holds"
    for _ in range(60):
        middle = 0.5 * (low + high)
        if line.back(middle)[0] > middle:
            low = middle
        else:
            high = middle
    return line.back(low)[1]

"""Benchmark problems with the networks they train, built from look-alike data or from the real files."""

from __future__ import annotations

from typing import Any

from dovetail.core.table import Part, Table

PROBLEMS: Table[Any] = Table(
    "problem",
    "problems",
    Part(
        "water",
        "dovetail.problems.water:water",
        "make as many water samples drinkable as a treatment budget allows (class outputs)",
    ),
    Part(
        "tree",
        "dovetail.problems.tree:tree",
        "plant four species on a grid so that most trees survive (networks tied to binaries)",
    ),
    Part(
        "wine",
        "dovetail.problems.wine:wine",
        "blend vineyards into wines of the best mean quality (one network, several wines)",
    ),
    Part(
        "diet",
        "dovetail.problems.diet:diet",
        "the cheapest diet that feeds and is palatable (a floor under a network's output)",
    ),
    Part(
        "function",
        "dovetail.problems.function:function",
        "the least of one learnt function where another has a given value (an equality)",
    ),
    Part(
        "adversarial",
        "dovetail.problems.adversarial:adversarial",
        "turn an image into another class by so much change (many inputs, one network)",
    ),
    Part(
        "heat",
        "dovetail.problems.heat:heat",
        "run a heat pump at whole levels through a day (integer and continuous inputs together)",
    ),
    Part(
        "dispatch",
        "dovetail.problems.dispatch:dispatch",
        "share out jobs so that the least efficient machine does best (many binaries)",
    ),
)

"""Benchmark problems with the networks they train, built from look-alike data or from the real files."""

from __future__ import annotations

from typing import Any

from dovetail.core.table import Part, Table

PROBLEMS: Table[Any] = Table(
    "problem",
    "problems",
    Part(
        "water",
        "dovetail_study.problems.water:water",
        "make as many water samples drinkable as a treatment budget allows (class outputs)",
    ),
    Part(
        "tree",
        "dovetail_study.problems.tree:tree",
        "plant four species on a grid so that most trees survive (networks tied to binaries)",
    ),
    Part(
        "wine",
        "dovetail_study.problems.wine:wine",
        "blend vineyards into wines of the best mean quality (one network, several wines)",
    ),
    Part(
        "diet",
        "dovetail_study.problems.diet:diet",
        "the cheapest diet that feeds and is palatable (a floor under a network's output)",
    ),
    Part(
        "function",
        "dovetail_study.problems.function:function",
        "the least of one learnt function where another has a given value (an equality)",
    ),
    Part(
        "adversarial",
        "dovetail_study.problems.adversarial:adversarial",
        "turn an image into another class by so much change (many inputs, one network)",
    ),
    Part(
        "heat",
        "dovetail_study.problems.heat:heat",
        "run a heat pump at whole levels through a day (integer and continuous inputs together)",
    ),
    Part(
        "dispatch",
        "dovetail_study.problems.dispatch:dispatch",
        "share out jobs so that the least efficient machine does best (many binaries)",
    ),
)

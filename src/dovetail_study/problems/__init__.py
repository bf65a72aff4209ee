"""Benchmark problems with the networks they train, built from look-alike data or from the real files."""

from __future__ import annotations

from typing import Any

from dovetail.core.table import Part, Table

_TEXTS = {
    "water": "make as many water samples drinkable as a treatment budget allows (class outputs)",
    "tree": "plant four species on a grid so that most trees survive (networks tied to binaries)",
    "wine": "blend vineyards into wines of the best mean quality (one network, several wines)",
    "diet": "the cheapest diet that feeds and is palatable (a floor under a network's output)",
    "function": "the least of one learnt function where another has a given value (an equality)",
    "adversarial": "turn an image into another class by so much change (many inputs, one network)",
    "heat": "run a heat pump at whole levels through a day (integer and continuous inputs together)",
    "dispatch": "share out jobs so that the least efficient machine does best (many binaries)",
}
"""The purpose of each; its module and its function have its name."""

PROBLEMS: Table[Any] = Table(
    "problem",
    "problems",
    *(Part(name, f"dovetail_study.problems.{name}:{name}", text) for name, text in _TEXTS.items()),
)

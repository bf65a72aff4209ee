"""Benchmark problems with the networks they train, built from look-alike data or from the real files.

Problems are listed by name here and imported when asked for.
"""

from __future__ import annotations

PROBLEMS = {
    "water": "make as many water samples drinkable as a treatment budget allows (class outputs)",
    "tree": "plant four species on a grid so that most trees survive (networks tied to binaries)",
}

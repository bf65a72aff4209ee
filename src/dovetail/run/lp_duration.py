"""How long an LP over a whole program takes, before anybody has begun with it."""

from __future__ import annotations

from dovetail.core.mip import Mip
from dovetail.core.stated_program import StatedProgram

PER_NONZERO = 2.5e-6
"""Seconds that HiGHS takes to load, presolve and solve an LP in which there is next to nothing to decide
(water, 10,000 samples: 450,000 entries, 1.1 s). Others take longer."""


def least_seconds(program: Mip | StatedProgram) -> float:
    """What an LP over all rows takes at the least: whoever cannot spare that should not ask for one."""
    nonzeros = program.nonzeros if isinstance(program, StatedProgram) else int(program.A.nnz)
    return PER_NONZERO * nonzeros

"""Pyomo's solvers, which refuse models with predictors.

Every solver that Pyomo knows by name is a class with a `solve`, its own or that of a class above it. The
classes of the solvers that are called without a name (`appsi`, `contrib.solver`) are among them.
"""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo
from pyomo.core.base.block import BlockData

from dovetail.core.foreign import Ties
from dovetail.models.own_solves import ask_first, tell_copies


def watch_solvers(ties: Ties) -> None:
    """Let all of them look at the blocks of a model before they solve it."""

    def ask(solver: Any, *args: Any, **options: Any) -> None:
        held = getattr(solver, "_pyomo_model", None)  # of a persistent solver, whose solve() names no model
        for model in (held, *args, *options.values()):
            if isinstance(model, BlockData):
                ties.refuse(model.block_data_objects(active=True))

    for name in pyo.SolverFactory:
        for owner in pyo.SolverFactory.get_class(name).__mro__:
            ask_first(owner, ["solve"], ask)
    tell_copies(BlockData, ["clone"], lambda model, copy: ties.copied(model.block_data_objects(), copy))

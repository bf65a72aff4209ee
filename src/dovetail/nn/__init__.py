"""Sub-solvers for the network step; swapping one for another is one argument."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dovetail.core.table import Part, Table

if TYPE_CHECKING:  # this table is read with the package: it must not load torch
    from dovetail.run.network_step import NnSolver

SUB_SOLVERS: Table[NnSolver] = Table(
    "sub-solver",
    "sub-solvers for the network step",
    Part(
        "ProjectedGradient",
        "dovetail.nn.projected_gradient:ProjectedGradient",
        "Adam or plain gradient steps, each followed by a projection",
    ),
    Part(
        "LogBarrier",
        "dovetail.nn.barrier:LogBarrier",
        "Newton-CG or L-BFGS-B on a log barrier; no equalities on outputs",
    ),
)

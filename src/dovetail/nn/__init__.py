"""Sub-solvers for the network step; swapping one for another is one argument."""

from __future__ import annotations

from dovetail.nn.adam import Adam, steepest
from dovetail.nn.barrier import LogBarrier
from dovetail.nn.projected_gradient import ProjectedGradient

__all__ = ["Adam", "LogBarrier", "ProjectedGradient", "steepest"]

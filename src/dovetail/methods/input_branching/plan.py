"""Whether the networks of a problem read few enough inputs, and the box to begin with."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dovetail.analysis.boxes import input_box
from dovetail.analysis.joint_network import JointNetwork, joint_network
from dovetail.analysis.reached_box import reached_box
from dovetail.bounds.box import propagate
from dovetail.core.amounts import several
from dovetail.core.arrays import FloatArray
from dovetail.core.errors import UnsupportedError
from dovetail.core.mip import TOLERANCE, Mip
from dovetail.run.context import SolveContext

MOST_INPUTS = 12
"""Free inputs, together: five take seconds, eight take ten, twelve are hopeless but for easy networks. More
are branched over only where nothing else proves a bound (`Facts`)."""
MOST_CELLS = 200_000
"""Rows times columns of one box's LP: beyond that a box takes a second."""


@dataclass(frozen=True, eq=False)
class Plan:
    """What to branch over: all columns and slack columns, within a box."""

    mip: Mip
    """In minimisation form, as loose as the check."""
    network: JointNetwork
    lower: FloatArray
    upper: FloatArray
    free: int
    """Inputs that can move."""

    def describe(self) -> str:
        """For the log."""
        return f"{several(self.free, 'input')} of {several(len(self.network.groups), 'network sample')}"


def input_plan(context: SolveContext) -> Plan | str:
    """How to branch, or why not; made once (see `SolveContext.once`)."""
    problem = context.relaxed or context.problem
    if problem.mip.n_rows * problem.mip.n_columns > MOST_CELLS:
        return _too_large(problem.mip, problem.mip.n_rows)  # before anything is made of its networks
    mip = problem.mip.minimised().loosened()
    loose = problem.derived(mip, problem.blocks)
    box = reached_box(loose, input_box(loose, context.budget, seed=context.seed, threads=context.threads))
    try:
        network = joint_network(loose, box.lower, box.upper)
        return _planned(mip, network, box.lower.copy(), box.upper.copy())
    except UnsupportedError as reason:
        return str(reason)


def _planned(mip: Mip, network: JointNetwork, lower: FloatArray, upper: FloatArray) -> Plan | str:
    rows = mip.n_rows + 2 * network.graph.outputs
    if rows * (mip.n_columns + network.slack.size) > MOST_CELLS:
        return _too_large(mip, rows)
    read = network.inputs[network.inputs < mip.n_columns]
    free = int(np.count_nonzero(upper[read] - lower[read] > 4.0 * TOLERANCE))
    lower, upper = np.append(lower, -network.slack), np.append(upper, network.slack)
    for group in network.groups:
        if group.classifies:
            lower[group.columns] = np.maximum(np.ceil(lower[group.columns] - TOLERANCE), 0.0)
            upper[group.columns] = np.minimum(np.floor(upper[group.columns] + TOLERANCE), 1.0)
        else:
            lower[group.columns] = np.maximum(lower[group.columns], network.lower[group.columns])
            upper[group.columns] = np.minimum(upper[group.columns], network.upper[group.columns])
    if np.any(lower > upper):
        return "the box is empty"
    if not np.all(np.isfinite(upper - lower)):  # rows may limit the others: the mean of outputs, say
        n = mip.n_columns
        reached = propagate(replace(mip, lower=lower[:n], upper=upper[:n]))
        lower[:n], upper[:n] = reached.lower, reached.upper
    if not np.all(np.isfinite(upper - lower)):
        j = int(np.flatnonzero(~np.isfinite(upper - lower))[0])
        return f"{mip.column_name(j)} has no bound"
    return Plan(mip, network, lower, upper, free)


def _too_large(mip: Mip, rows: int) -> str:
    return f"too many rows and columns for an LP per box ({rows} and {mip.n_columns})"

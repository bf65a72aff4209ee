"""Whether the networks of a problem read few enough inputs, and the box to begin with."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dovetail.analysis.joint_network import JointNetwork, joint_network
from dovetail.analysis.reached_box import MOST_CELLS, reached
from dovetail.bounds.box import propagate
from dovetail.core.amounts import several
from dovetail.core.arrays import FloatArray
from dovetail.core.errors import UnsupportedError
from dovetail.core.mip import TOLERANCE, Mip
from dovetail.run.context import SolveContext

MOST_INPUTS = 12
"""Free inputs, together: five take seconds, eight take ten, twelve are hopeless but for easy networks. More
are branched over only where nothing else proves a bound (`Facts`)."""


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
    found = context.once(reached)
    if found is None:
        mip = (context.relaxed or context.problem).mip
        return _too_large(mip, mip.n_rows)
    if found.why_empty:
        return found.why_empty
    problem, box = found.problem, found.box
    try:
        network = joint_network(problem, box.lower, box.upper)
    except UnsupportedError as reason:
        return str(reason)
    return _planned(problem.mip, network, box.lower, box.upper)


def _planned(mip: Mip, network: JointNetwork, lower: FloatArray, upper: FloatArray) -> Plan | str:
    rows = mip.n_rows + 2 * network.graph.outputs
    if rows * (mip.n_columns + network.slack.size) > MOST_CELLS:
        return _too_large(mip, rows)
    read = network.inputs[network.inputs < mip.n_columns]
    free = int(np.count_nonzero(upper[read] - lower[read] > 4.0 * TOLERANCE))
    lower, upper = np.append(lower, -network.slack), np.append(upper, network.slack)
    if not np.all(np.isfinite(upper - lower)):  # rows may limit the others: the mean of outputs, say
        n = mip.n_columns
        limited = propagate(replace(mip, lower=lower[:n], upper=upper[:n]))
        lower[:n], upper[:n] = limited.lower, limited.upper
    if not np.all(np.isfinite(upper - lower)):
        j = int(np.flatnonzero(~np.isfinite(upper - lower))[0])
        return f"{mip.column_name(j)} has no bound"
    return Plan(mip, network, lower, upper, free)


def _too_large(mip: Mip, rows: int) -> str:
    return f"too many rows and columns for an LP per box ({rows} and {mip.n_columns})"

"""Whether the networks of a problem read few enough inputs, and the box to begin with."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dovetail.bounds.box import Box, needed_ends, propagate
from dovetail.core.arrays import FloatArray
from dovetail.core.mip import TOLERANCE, Mip
from dovetail.core.problem import Problem
from dovetail.core.words import several
from dovetail.run.context import SolveContext
from dovetail.structure.boxes import MOST_CELLS, too_large
from dovetail.structure.networks import JointNetwork
from dovetail.structure.structure import structure_of

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
    structure = context.once(structure_of)
    network, found = structure.joint_network, structure.reached
    if isinstance(network, str) or found is None:
        return str(network)
    return _planned(found.problem, network, found.box)


def _planned(problem: Problem, network: JointNetwork, box: Box) -> Plan | str:
    mip, lower, upper = problem.mip, box.lower, box.upper
    rows = mip.n_rows + 2 * network.graph.outputs
    if rows * (mip.n_columns + network.slack.size) > MOST_CELLS:
        return too_large(mip, rows)
    read = network.inputs[network.inputs < mip.n_columns]
    free = int(np.count_nonzero(upper[read] - lower[read] > 4.0 * TOLERANCE))
    lower, upper = np.append(lower, -network.slack), np.append(upper, network.slack)
    if not np.all(np.isfinite(upper - lower)):  # rows may limit the others: the mean of outputs, say
        n = mip.n_columns
        limited = propagate(replace(mip, lower=lower[:n], upper=upper[:n]))
        lower[:n], upper[:n] = limited.lower, limited.upper
        own, sides = ~mip.integer, (mip.row_lower, mip.row_upper)
        own[problem.inputs] = own[problem.outputs] = False
        needed_ends(mip.A, sides, mip.cost, own, lower[:n], upper[:n])
    if not np.all(np.isfinite(upper - lower)):
        j = int(np.flatnonzero(~np.isfinite(upper - lower))[0])
        return f"{mip.column_name(j)} has no bound"
    return Plan(mip, network, lower, upper, free)

"""The last step of every search: away from rows that hold only as this machine rounds.

Searches end on the rows that limit them. A network in float32 is no smooth function there: evaluated one by
one, the same samples may miss the row by what the network rounds. From such a point a short descent goes
to the same problem with its limits moved in by that much. What it costs is as small as the rounding; a
point that would cost more, or lose its proof, is not taken, and the result says what may be missed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from dovetail.bounds.box import propagate
from dovetail.core.arrays import FloatArray
from dovetail.core.budget import Budget, StopReason
from dovetail.core.clearance import cleared, has_room
from dovetail.core.engine import Quadratic
from dovetail.core.errors import EngineError
from dovetail.core.incumbent import Incumbent
from dovetail.core.mip import Mip
from dovetail.core.problem import Problem
from dovetail.core.search import Search
from dovetail.local.descent import Options
from dovetail.local.scene import Scene
from dovetail.local.walk import Walk
from dovetail.mip import HighsEngine

SECONDS = 0.5
"""The longest it takes, also after the end of the time."""
RADIUS, STEPS = 0.01, 15
"""The rounding is a tiny part of any box: near steps, and few of them."""
WORTH = 1e-4
"""The most that a clear point may cost, relative to the objective."""


def clear(search: Search) -> None:
    """Put a point that holds however its predictors round in the place of an incumbent that may not."""
    incumbent = search.incumbent
    if incumbent.x is None or all(block.predictor.exact for block in search.problem.blocks):
        return
    if search.budget.stopped is StopReason.INTERRUPT or incumbent.steady:
        return  # who presses Ctrl-C wants the point as it is
    change, lead = incumbent.rounding(incumbent.x)
    if not has_room(search.problem, change):
        return
    point = _near(search, incumbent.x, cleared(search.problem, change, lead))
    if point is not None:
        incumbent.settle_for(point, WORTH)


def _near(search: Search, x: FloatArray, problem: Problem) -> FloatArray | None:
    """The best point near `x` that a short descent finds in the cleared problem, or none."""
    budget = Budget(SECONDS)
    door = Incumbent(
        search.problem,
        HighsEngine(),
        budget,
        search.stopwatch,
        seed=search.seed,
        threads=search.threads,
        steady=True,
    )
    inside = replace(search, problem=problem, incumbent=door, budget=budget)
    try:
        scene = Scene.of(inside, box=propagate(problem.mip))
        start = _nearest(scene.host, x, scene.width, inside)
        if start is not None:
            Walk(inside, scene, Options(steps=STEPS)).descend(start, RADIUS, budget, "clear", steps=1)
    except EngineError:
        pass  # an engine in trouble here costs a nicer point, not the solve
    return door.x


def _nearest(host: Mip, x: FloatArray, width: FloatArray, search: Search) -> FloatArray | None:
    """The point of the host's rows, integers as they are, that is nearest to `x`: min |z - x|, an LP.

    A descent compares points by what they cost and counts on its start to satisfy the rows.
    """
    up, down = host.upper - x, x - host.lower
    up[host.integer] = down[host.integer] = 0.0
    activity = host.A @ x
    moves = Mip(
        cost=np.concatenate([1.0 / width, 1.0 / width]),
        A=sp.hstack([host.A, -host.A]),
        row_lower=host.row_lower - activity,
        row_upper=host.row_upper - activity,
        lower=np.maximum(0.0, -np.concatenate([down, up])),
        upper=np.maximum(0.0, np.concatenate([up, down])),
    )
    nothing = np.empty(0, dtype=np.int64)
    session = HighsEngine().load(moves, nothing, seed=search.seed, threads=search.threads)
    answer = session.solve(Quadratic.linear(moves.cost, 0.0), budget=search.budget)
    return None if answer.x is None else x + answer.x[: x.size] - answer.x[x.size :]

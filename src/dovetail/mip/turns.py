"""One linear program or MIP, solved once: by one engine, or by several in turn.

What takes one engine long may be easy for another. HiGHS has the first moments, in which it solves what is
easy; then SCIP, where it is installed; then HiGHS once more, with what is left of the time. The distances of
PySCIPOpt-ML's city manager (minima of absolute values, 492 integers) take HiGHS three to four seconds and
SCIP 0.7.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import EngineError
from dovetail.core.mip import Mip
from dovetail.mip import engine_for
from dovetail.run.budget import Budget
from dovetail.run.engine import Bounds, MipAnswer, MipSession, Quadratic
from dovetail.run.failures import expendable

Turns = tuple[tuple[str, float], ...]
"""Who is asked, and for which part of the time that is left then."""
FOR_POINTS: Turns = (("highs", 0.1), ("scip", 0.7), ("highs", 1.0))
FOR_BOUNDS: Turns = (("highs", 0.1), ("scip", 0.5), ("highs", 1.0))
"""Where HiGHS has a point soon it may need its time for the bound: SCIP's turn is shorter."""
LEAST = 2.0
"""Seconds: with less HiGHS has all of them. To load SCIP alone takes a part of one."""
NO_WEIGHTS = np.empty(0, dtype=np.int64)


def loaded(engine: str, mip: Mip, *, seed: int, threads: int) -> MipSession:
    """A program in minimisation form inside an engine, for linear objectives."""
    return engine_for(engine, mip, NO_WEIGHTS).load(mip, NO_WEIGHTS, seed=seed, threads=threads)


def answer_of(
    part: str,
    mip: Mip,
    budget: Budget,
    *,
    seed: int,
    threads: int,
    engine: str = "highs",
    objective: Quadratic | None = None,
    start: FloatArray | None = None,
    gap: float = 1e-6,
    bounds: Bounds | None = None,
    cutoff: float = np.inf,
) -> MipAnswer | None:
    """What an engine says of a program in minimisation form; None where it fails, which is noted as a failure
    of the `part`. The program's cost is the objective unless there is another; `MipSession.solve` has the
    other arguments."""
    goal = Quadratic.linear(mip.cost, mip.offset) if objective is None else objective
    with expendable(part, EngineError):
        session = loaded(engine, mip, seed=seed, threads=threads)
        return session.solve(goal, budget=budget, start=start, gap=gap, bounds=bounds, cutoff=cutoff)
    return None


def answers_in_turn(
    mip: Mip,
    objective: Quadratic,
    budget: Budget,
    turns: Turns,
    *,
    seed: int,
    threads: int,
    gap: float = 1e-6,
) -> Iterator[MipAnswer]:
    """What each engine says, asked when its answer is wanted; one that fails says nothing."""
    for name, share in turns if budget.left >= LEAST else turns[-1:]:
        if budget.over or (name == "scip" and find_spec("pyscipopt") is None):
            continue
        answer = answer_of(
            f"MIP by {name}", mip, budget.part(share * budget.left), seed=seed, threads=threads, engine=name,
            objective=objective, gap=gap,
        )  # fmt: skip
        if answer is not None:
            yield answer

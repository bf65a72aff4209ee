"""A linear program or MIP solved once: by one engine, or by all installed engines in turns.

A problem that is hard for one engine may be easy for another: the distances of PySCIPOpt-ML's city manager
(minima of absolute values, 492 integers) take HiGHS three to four seconds and SCIP 0.7.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import EngineError
from dovetail.core.mip import Mip
from dovetail.mip import engine_for
from dovetail.run.budget import Budget
from dovetail.run.engine import Bounds, MipAnswer, MipSession, Quadratic
from dovetail.run.failures import expendable
from dovetail.run.turns import race

NO_WEIGHTS = np.empty(0, dtype=np.int64)


def loaded(engine: str, mip: Mip, *, seed: int, threads: int) -> MipSession:
    """A program in minimisation form loaded into an engine, for linear objectives."""
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
    """An engine's answer to a program in minimisation form; None if it fails, which counts as a failure of
    the `part`. The program's cost is the objective unless another is given; other arguments are those of
    `MipSession.solve`."""
    goal = Quadratic.linear(mip.cost, mip.offset) if objective is None else objective
    with expendable(part, EngineError):
        session = loaded(engine, mip, seed=seed, threads=threads)
        return session.solve(goal, budget=budget, start=start, gap=gap, bounds=bounds, cutoff=cutoff)
    return None


def installed() -> tuple[str, ...]:
    """The installed engines for MIPs."""
    return ("highs",) if find_spec("pyscipopt") is None else ("highs", "scip")


def answers_in_turns(
    mip: Mip,
    objective: Quadratic,
    budget: Budget,
    decides: Callable[[MipAnswer], bool],
    *,
    seed: int,
    threads: int,
    gap: float = 1e-6,
) -> list[MipAnswer]:
    """The engines' answers until one decides; an engine that fails gives none."""

    def ask(engine: str, budget: Budget) -> MipAnswer | None:
        return answer_of(
            f"MIP by {engine}", mip, budget, seed=seed, threads=threads, engine=engine, objective=objective,
            gap=gap,
        )  # fmt: skip

    runs = [partial(ask, engine) for engine in installed()]
    answers = race(runs, budget, lambda answer: answer is not None and decides(answer))
    return [answer for answer in answers if answer is not None]

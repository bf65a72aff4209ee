"""`n_jobs=` of a solve: the same problem in other processes with other seeds, where it can travel there.

Threads have little to share in one solve: descents are chains of small LPs and small networks. Searches with
other seeds need nothing of each other and end in other local optima; the best of them is the answer. With
very many blocks the blocks are spread instead (`template_pricing.hiring`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from dovetail.core.arrays import FloatArray
from dovetail.core.problem import Problem
from dovetail.methods.auto import Auto
from dovetail.methods.template_pricing.hiring import WORTH_SPREADING
from dovetail.run.budget import Budget
from dovetail.run.concurrent_solves import ConcurrentSolves
from dovetail.run.environment import threads
from dovetail.run.failures import expendable
from dovetail.run.monitor import Monitor
from dovetail.run.process_workers import process_lines
from dovetail.run.remote_workers import CannotTravel
from dovetail.solving.concurrent_solve import ConcurrentSolve, Solve
from dovetail.solving.options import SolveOptions

LEAST_SECONDS = 5.0
"""Processes take three seconds to start: a shorter solve would not hear from them."""
HANDOVER_SECONDS = 1.0
"""Before the end: what they have found by then is fetched, and checked here."""


@contextmanager
def concurrent_solves(
    solve: Solve,
    problem: Problem,
    start: FloatArray | None,
    options: SolveOptions,
    budget: Budget,
    monitor: Monitor,
) -> Iterator[ConcurrentSolves | None]:
    """One solve less than there are jobs, by `solve`, for as long as this one takes; None where there are
    none."""
    others = None
    with expendable("start of concurrent solves"):
        if _worthwhile(problem, options, budget):
            others = _begun(solve, problem, start, options, budget, monitor)
    if others is None:
        yield None
        return
    try:
        with threads(1):  # every core has a solve of its own
            yield others
    finally:
        others.close()


def _worthwhile(problem: Problem, options: SolveOptions, budget: Budget) -> bool:
    """Whether it would be more of the same: `auto` with networks, ended by the clock and not by an effort."""
    samples = sum(block.samples for block in problem.blocks)
    here = options.cluster is None and options.device in (None, "cpu")
    many = options.threads > 1 and 0 < samples < WORTH_SPREADING
    by_clock = isinstance(options.method, Auto) and options.method.effort is None
    return here and many and by_clock and budget.left >= LEAST_SECONDS


def _begun(
    solve: Solve,
    problem: Problem,
    start: FloatArray | None,
    options: SolveOptions,
    budget: Budget,
    monitor: Monitor,
) -> ConcurrentSolves | None:
    """Every other one leaves proofs alone and searches all the time: one proof is enough, the one here."""
    method, jobs, deadline = options.method, options.threads, time.time() + budget.left - HANDOVER_SECONDS
    assert isinstance(method, Auto)
    recipes = [
        partial(
            ConcurrentSolve, solve, problem, start,
            replace(method, exact=method.exact and number % 2 == 0), options.seed + number, jobs, deadline,
        )
        for number in range(1, jobs)
    ]  # fmt: skip
    try:
        others = ConcurrentSolves(process_lines([[recipe] for recipe in recipes]), monitor.say)
    except CannotTravel as reason:
        monitor.fact("n_jobs", f"one solve with {jobs} threads: other processes cannot have it ({reason})")
        return None
    last = options.seed + jobs - 1
    monitor.fact("n_jobs", f"{jobs} solves at once, seeds {options.seed} to {last}; points are shared")
    return others

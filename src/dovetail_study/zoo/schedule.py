"""Schedule: jobs on machines, with crews whose size decides how long a job takes.

    min  end + wage sum of crews
    s.t. every job on one machine,   end >= sum of times on each machine
         time_jm >= duration_j - M (1 - assigned_jm),   sum of crews <= workers
         duration_j = f(size_j, difficulty_j, crew_j),   crew_j in {1, 2, 3, 4}

Feasible: every job has one worker, and there are more workers than jobs.
"""

from __future__ import annotations

import numpy as np

import dovetail as dt
from dovetail.core.arrays import FloatArray
from dovetail_study.problems.host import Host
from dovetail_study.zoo.learners import by_size, network

CREW = (1, 4)
LONGEST = 15.0
"""The longest duration of a job: the big M of the user's own rows."""


def schedule(size: int, seed: int) -> dt.Problem:
    """Jobs drawn like those of the data; one network for all."""
    rng = np.random.default_rng(seed)
    jobs, machines = by_size(size, (5, 2), (9, 3), (24, 5))
    model = network(*_history(rng), size, seed)

    host = Host()
    end = host.variable("end", 0.0, LONGEST * jobs, cost=1.0)
    crew = [host.variable(f"crew[{j}]", *CREW, cost=0.25, integer=True) for j in range(jobs)]
    host.row("workers", [(1.0, j) for j in crew], upper=2 * jobs)
    duration = [host.output(f"duration[{j}]", 0.0, LONGEST) for j in range(jobs)]
    work: list[list[int]] = [[] for _ in range(machines)]
    for j in range(jobs):
        machine = host.choice(f"machine[{j}]", machines)
        for m in range(machines):
            work[m].append(host.variable(f"time[{j},{m}]", 0.0, LONGEST))
            terms = [(1.0, work[m][j]), (-1.0, duration[j]), (-LONGEST, int(machine[m]))]
            host.row(f"time[{j},{m}]", terms, lower=-LONGEST)
    for m in range(machines):
        host.row(f"end[{m}]", [(1.0, end), *((-1.0, j) for j in work[m])], lower=0.0)
    size_of, hard = rng.uniform(2.0, 8.0, jobs), rng.uniform(0.0, 1.0, jobs)
    facts = [[host.known(f"size[{j}]", size_of[j]), host.known(f"hard[{j}]", hard[j])] for j in range(jobs)]
    problem = host.problem()
    problem.add_predictor(
        model, [[*facts[j], crew[j]] for j in range(jobs)], [[j] for j in duration], name="duration"
    )
    return problem


def _history(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """More workers help, with decreasing returns, and not at all if the work is hard to share."""
    n = 300
    size, hard, crew = (
        rng.uniform(2.0, 8.0, n),
        rng.uniform(0.0, 1.0, n),
        rng.integers(*CREW, n, endpoint=True),
    )
    hours = size * (0.6 + 0.6 * hard) / crew ** (0.8 - 0.5 * hard) + 0.2 * crew
    return np.column_stack([size, hard, crew]), hours + rng.normal(0.0, 0.1, n)

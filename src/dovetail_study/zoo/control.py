"""Control: a tank is kept between two temperatures by whole stages of a heater, over a horizon.

    min  sum of e_t + penalty (over_t + under_t)
    s.t. s_(t+1) = f(s_t, u_t, w_t),   e_t = g(s_t, u_t)                    two networks a step
         low - under_t <= s_t <= high + over_t,   u_t in {0, ..., 3},   w_t known
         |u_t - u_(t-1)| <= 2

Feasible: the limits on the state are soft, and the sensor's range, which is the states' bounds, holds
whatever the middle stage throughout leads to.
"""

from __future__ import annotations

import numpy as np

import dovetail as dt
from dovetail_study.problems.host import Host
from dovetail_study.zoo.learners import by_size, network

SENSOR = (0.0, 100.0)
STAGES = 3
LOW, HIGH, FIRST = 48.0, 56.0, 50.0
"""The target temperature, and the first one."""


def control(size: int, seed: int) -> dt.Problem:
    """A horizon of a few steps, a shift, or a day."""
    rng = np.random.default_rng(seed)
    steps = by_size(size, 4, 10, 24)
    step, bill = _trained(rng, size, seed)
    outside = (
        12.0 + 6.0 * np.sin(np.arange(steps) * 0.5 + rng.uniform(0.0, 6.0)) + rng.normal(0.0, 1.0, steps)
    )

    host = Host()
    state = [host.known("state[0]", FIRST)]
    state += [host.output(f"state[{t + 1}]", *SENSOR) for t in range(steps)]
    stage = [host.variable(f"stage[{t}]", 0, STAGES, integer=True) for t in range(steps)]
    weather = [host.known(f"outside[{t}]", outside[t]) for t in range(steps)]
    cost = [host.output(f"bill[{t}]", cost=1.0) for t in range(steps)]
    for t in range(1, steps + 1):
        over = host.variable(f"over[{t}]", cost=2.0)
        under = host.variable(f"under[{t}]", cost=3.0)
        host.row(f"high[{t}]", [(1.0, state[t]), (-1.0, over)], upper=HIGH)
        host.row(f"low[{t}]", [(1.0, state[t]), (1.0, under)], lower=LOW)
    for t in range(1, steps):
        host.row(f"ramp[{t}]", [(1.0, stage[t]), (-1.0, stage[t - 1])], -2.0, 2.0)
    problem = host.problem()
    problem.add_predictor(step, np.column_stack([state[:-1], stage, weather]), np.c_[state[1:]], name="step")
    problem.add_predictor(bill, np.column_stack([state[:-1], stage]), np.c_[cost], name="bill")
    return problem


def _trained(rng: np.random.Generator, size: int, seed: int) -> tuple[object, object]:
    """The tank cools towards the weather, and a hot tank takes less heat from a stage, at a higher price."""
    n = 300
    state, stage, outside = rng.uniform(*SENSOR, n), rng.integers(0, STAGES + 1, n), rng.uniform(0.0, 25.0, n)
    after = state - 0.12 * (state - outside) + stage * (5.5 - 0.03 * state) + rng.normal(0.0, 0.2, n)
    bill = stage * (1.0 + 0.15 * stage) * (1.0 + 0.004 * state) + rng.normal(0.0, 0.05, n)
    into = np.column_stack([state, stage, outside])
    return network(into, after, size, seed), network(into[:, :2], bill, size, seed + 1)

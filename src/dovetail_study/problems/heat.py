"""Heating: run a heat pump at whole levels through a day, with a tank between it and the house.

    min  sum_h p_h l_h + c sum_h f_h
    s.t. s_h = s_(h-1) + q_h - d_h,   0 <= s_h <= S,   s_(-1) given       the tank
         q_h = f(l_h, f_h, t_h)                                            heat from level, flow and weather
         l_h in {0, ..., 4},   f_h between its limits,   t_h given

One network serves all hours; of its three inputs one is an integer, one is continuous and one is a fact of
the hour. Neither tables (an input is continuous) nor slopes (an integer jumps) are sufficient alone. The pump
that the network learns is made up: heat grows with the level, less than in proportion, and falls with the
flow temperature and with cold weather. There is no file.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import OptionError
from dovetail.core.problem import Problem
from dovetail_study.problems import networks
from dovetail_study.problems.host import Host
from dovetail_study.problems.training import Regression, train_regressor

# Round numbers of a house and its heat pump.
LEVELS = 4
"""The highest level: few enough to enumerate one hour, 5^24 for a day."""
FLOW = (38.0, 60.0)
"""Limits of the flow temperature, in degrees: floor heating to radiators."""
WEATHER = (-10.0, 15.0)
"""Limits of the outdoor temperature, in degrees, within which a house is heated."""
TANK, FIRST = 12.0, 4.0
"""The capacity of the tank, two or three hours of need, and its first content."""
FLOW_COST = 0.002
"""The price of one degree for one hour: small beside the price of a level."""


@dataclass(frozen=True, eq=False)
class Heat:
    """One instance: the problem, its network, and the columns of its variables."""

    problem: Problem
    network: nn.Module
    training: Regression
    level: IntArray
    """(hours,) columns of the levels."""
    flow: IntArray
    heat: IntArray
    stored: IntArray
    weather: FloatArray
    need: FloatArray
    price: FloatArray


def heat(
    hours: int = 24, network: str = "2x16", *, rows: int = 3000, seed: int = 42, epochs: int = 40
) -> Heat:
    """A day drawn with `seed`, and a trained network."""
    if hours < 1:
        raise OptionError(f"hours is {hours}; give at least 1.")
    rng = np.random.default_rng(seed)
    X, measured = look_alike(rows, rng)
    torch.manual_seed(seed)
    net = networks.build(network, 3)
    training = train_regressor(net, X, measured, seed=seed, epochs=epochs)
    clock = np.arange(hours) * 2.0 * np.pi / 24.0
    weather = 3.0 - 6.0 * np.cos(clock - 0.8) + rng.normal(0.0, 1.0, hours)
    price = 0.25 + 0.1 * np.sin(2.0 * clock - 2.0) + rng.uniform(0.0, 0.05, hours)
    return formulate(net, training, np.clip(weather, *WEATHER), 5.0 - 0.15 * weather, price)


def formulate(
    net: nn.Module, training: Regression, weather: FloatArray, need: FloatArray, price: FloatArray
) -> Heat:
    """The model for a given day."""
    host, hours = Host(), range(len(weather))
    level = host.variables("level", hours, upper=LEVELS, cost=price, integer=True)
    flow = host.variables("flow", hours, lower=FLOW[0], upper=FLOW[1], cost=FLOW_COST)
    fact = host.variables("weather", hours, lower=weather, upper=weather)
    made = host.variables("heat", hours, lower=-np.inf)
    stored = host.variables("stored", hours, upper=TANK)
    for h in hours:
        before = [(1.0, stored[h - 1])] if h else []
        host.equal(f"tank[{h}]", stored[h], [(1.0, made[h]), *before], -need[h] + (0.0 if h else FIRST))
    problem = host.problem()
    problem.add_predictor(net, np.column_stack([level, flow, fact]), made[:, None], name="pump")
    return Heat(problem, net, training, level, flow, made, stored, weather, need, price)


def look_alike(rows: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """(level, flow, weather) and the heat that was measured."""
    low, high = np.array([0.0, FLOW[0], WEATHER[0]]), np.array([LEVELS, FLOW[1], WEATHER[1]])
    X = rng.uniform(low, high, (rows, 3))
    level, flow, weather = X.T
    heat = level * (3.2 + 0.06 * weather - 0.03 * (flow - 30.0)) - 0.12 * level**2
    return X, heat + rng.normal(0.0, 0.02, rows)

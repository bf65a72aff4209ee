"""Families of stated blocks with other structure than water.

    python -m benchmarks.stated_families --sizes 100 1000 10000 100000
    python -m benchmarks.stated_families --families customers ladder --sizes 2000 --written

*Customers* (ReLU) and *smooth customers* (tanh): a discount and at most one of three channels;
a budget, two capacities and a floor over all. *Dose*: two continuous inputs, a second network under a floor,
an equation over all. *Ladder*: five products at one of four prices each, an equation and a floor over all.
Networks (2x32) are trained on a made-up history; one thread, every run in a process of its own, until it
ends by itself.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from rich.console import Console
from torch import nn

import dovetail as dt
from benchmarks.parallel import each
from dovetail.core.arrays import FloatArray
from dovetail.decomposition import TemplatePricing
from dovetail_study.experiment import ResultTable

SIZES = (100, 1_000, 10_000)
LIMIT = 900.0
"""Seconds; template pricing ends by itself."""

CHANNEL_COST = np.array([0.3, 0.8, 2.0])
"""Of a mail, a call and a visit."""


def customers(n: int, activation: type[nn.Module] = nn.ReLU) -> dt.Problem:
    """A discount and at most one channel for each customer; sales have a worth of their own."""

    def sales(u: FloatArray) -> FloatArray:
        facts, discount, channel = u[:, :5], u[:, 5], u[:, 6:]
        keen = 1.0 / (1.0 + np.exp(-2.0 * facts[:, 0] - facts[:, 1]))
        likes = 1.0 + facts[:, 2:5]
        return 2.0 + facts[:, 0] + 12.0 * keen * np.sqrt(discount + 0.01) + (channel * likes).sum(axis=1)

    def drawn(rng: np.random.Generator, count: int) -> FloatArray:
        channel = np.eye(4)[rng.integers(0, 4, count)][:, 1:]
        return np.column_stack([rng.uniform(-1.0, 1.0, (count, 5)), rng.uniform(0.0, 0.3, count), channel])

    rng, problem = np.random.default_rng(2), dt.Problem(sense="max")
    worth, price = rng.uniform(0.5, 2.0, n), rng.uniform(5.0, 20.0, n)
    made = problem.add_template(
        n,
        {
            "about": dt.Family(fixed=rng.uniform(-1.0, 1.0, (n, 5))),
            "discount": dt.Family(upper=0.3),
            "channel": dt.Family(upper=1.0, integer=True, width=3),
            "spend": dt.Family(cost=-1.0),
            "sales": dt.Family(lower=-np.inf, cost=5.0 * worth),
        },
        rows=[
            dt.FamilyRow({"channel": 1.0}, upper=1.0, summed=True, name="one channel"),
            dt.FamilyRow(
                {"spend": 1.0, "discount": -price, "channel": -CHANNEL_COST[None]},
                lower=0.0, upper=0.0, summed=True, name="paid",
            ),
        ],
        coupling=[
            dt.FamilyRow({"spend": 1.0}, upper=1.2 * n, name="budget"),
            dt.FamilyRow({"channel": np.array([[0.0, 1.0, 0.0]])}, upper=0.2 * n, summed=True, name="calls"),
            dt.FamilyRow({"channel": np.array([[0.0, 0.0, 1.0]])}, upper=0.1 * n, summed=True, name="visits"),
            dt.FamilyRow({"channel": np.array([[1.0, 0.0, 0.0]])}, lower=0.4 * n, summed=True, name="mails"),
        ],
    )  # fmt: skip
    network = _trained(sales, drawn, activation, 5)
    problem.add_predictor(network, made["about", "discount", "channel"], made["sales"], name="response")
    return problem


def smooth_customers(n: int) -> dt.Problem:
    """The same through a network of tanh."""
    return customers(n, nn.Tanh)


def dose(n: int) -> dt.Problem:
    """Two amounts for each patient: what they help is worth something, comfort has a floor of its own."""

    def helped(u: FloatArray) -> FloatArray:
        return (1.0 + u[:, 0]) * np.sqrt(u[:, 3] + 0.05) + (1.0 + u[:, 1]) * u[:, 4] * (1.4 - u[:, 4])

    def comfort(u: FloatArray) -> FloatArray:
        return 1.0 + 0.3 * u[:, 2] - u[:, 3] ** 2 * (1.0 + 0.5 * u[:, 0]) - 0.6 * u[:, 3] * u[:, 4]

    def drawn(rng: np.random.Generator, count: int) -> FloatArray:
        return np.column_stack([rng.uniform(-1.0, 1.0, (count, 3)), rng.uniform(0.0, 1.0, (count, 2))])

    rng, problem = np.random.default_rng(3), dt.Problem(sense="max")
    patients, networks = rng.uniform(-1.0, 1.0, (n, 3)), {}
    for seed, (name, truth) in enumerate({"helps": helped, "comfort": comfort}.items()):
        networks[name] = _trained(truth, drawn, nn.ReLU, 6 + seed)
    none = torch.as_tensor(np.column_stack([patients, np.zeros((n, 2))]), dtype=torch.float32)
    with torch.no_grad():
        floor = networks["comfort"](none)[:, 0].double().numpy() - rng.uniform(0.1, 0.5, n)
    made = problem.add_template(
        n,
        {
            "patient": dt.Family(fixed=patients),
            "amount": dt.Family(upper=1.0, width=2, cost=-0.2),
            "helps": dt.Family(lower=-np.inf, cost=rng.uniform(0.5, 2.0, n)),
            "comfort": dt.Family(lower=-np.inf),
        },
        rows=[dt.FamilyRow({"comfort": 1.0}, lower=floor, name="floor")],
        coupling=[
            dt.FamilyRow({"amount": np.array([[1.0, 0.0]])}, 0.3 * n, 0.3 * n, summed=True, name="first"),
            dt.FamilyRow({"amount": np.array([[0.0, 1.0]])}, upper=0.35 * n, summed=True, name="second"),
        ],
    )
    for name, network in networks.items():
        problem.add_predictor(network, made["patient", "amount"], made[name], name=name)
    return problem


LEVELS = np.array([4.0, 5.0, 6.5, 8.0])


def ladder(n: int) -> dt.Problem:
    """Five products at one of four prices in each store: as many products on offer as agreed, and a level."""

    def profit(u: FloatArray) -> FloatArray:
        keen = np.array([0.3, 0.35, 0.4, 0.45, 0.5])
        liked = np.exp(-keen * (u[:, 1:] - 5.0) * (1.0 + 0.2 * u[:, :1]))
        bought = liked / (0.5 + liked.sum(axis=1, keepdims=True))
        return 20.0 * (1.0 + 0.3 * u[:, 0]) * (bought * (u[:, 1:] - 2.5)).sum(axis=1)

    def drawn(rng: np.random.Generator, count: int) -> FloatArray:
        return np.column_stack([rng.uniform(-1.0, 1.0, count), LEVELS[rng.integers(0, 4, (count, 5))]])

    rng, problem = np.random.default_rng(4), dt.Problem(sense="max")
    choice = {f"level{p}": dt.Family(upper=1.0, integer=True, width=4) for p in range(5)}
    cheapest = np.array([[1.0, 0.0, 0.0, 0.0]])
    made = problem.add_template(
        n,
        {
            "visitors": dt.Family(fixed=rng.uniform(-1.0, 1.0, n)),
            **choice,
            **{f"price{p}": dt.Family() for p in range(5)},
            "profit": dt.Family(lower=-np.inf, cost=1.0),
        },
        rows=[
            row
            for p in range(5)
            for row in (
                dt.FamilyRow({f"level{p}": 1.0}, lower=1.0, upper=1.0, summed=True, name=f"one{p}"),
                dt.FamilyRow(
                    {f"price{p}": 1.0, f"level{p}": -LEVELS[None]}, lower=0.0, upper=0.0, summed=True,
                    name=f"price{p}",
                ),
            )
        ],
        coupling=[
            dt.FamilyRow({f"level{p}": cheapest for p in range(5)}, n, n, summed=True, name="on offer"),
            dt.FamilyRow({f"price{p}": 0.2 for p in range(5)}, lower=6.4 * n, name="price level"),
        ],
    )  # fmt: skip
    prices = [f"price{p}" for p in range(5)]
    network = _trained(profit, drawn, nn.ReLU, 9)
    problem.add_predictor(network, made["visitors", *prices], made["profit"], name="profit")
    return problem


FAMILIES = {"customers": customers, "smooth customers": smooth_customers, "dose": dose, "ladder": ladder}


def written(problem: dt.Problem) -> dt.Problem:
    """The same as a program with arrays of indices."""
    plain = dt.Problem(problem.mip)
    for block in problem.blocks:
        plain.add_predictor(block.predictor, block.inputs, block.outputs, name=block.name)
    return plain


def _trained(
    truth: Callable[[FloatArray], FloatArray],
    drawn: Callable[[np.random.Generator, int], FloatArray],
    activation: type[nn.Module],
    seed: int,
) -> nn.Module:
    """Two hidden layers of 32, fitted to a made-up history."""
    torch.manual_seed(seed)
    u = drawn(np.random.default_rng(seed), 2_000)
    network = nn.Sequential(
        nn.Linear(u.shape[1], 32), activation(), nn.Linear(32, 32), activation(), nn.Linear(32, 1)
    )
    inputs, aims = (torch.as_tensor(a, dtype=torch.float32) for a in (u, truth(u)[:, None]))
    adam = torch.optim.Adam(network.parameters(), lr=1e-2)
    for _ in range(400):
        adam.zero_grad()
        torch.nn.functional.mse_loss(network(inputs), aims).backward()
        adam.step()
    return network.eval()


@dataclass(frozen=True)
class Asked:
    """One run."""

    family: str
    n: int
    written: bool
    """Out as a program, or a template."""


@dataclass(frozen=True)
class Answer:
    """Seconds of the CPU; GB at most."""

    objective: float
    limit: float
    """No choice of the columns found is beyond it."""
    bound: str
    """With what stands behind it."""
    building: float
    solving: float
    memory: float


def answered(asked: Asked) -> Answer:
    """Build and solve once."""
    torch.set_num_threads(1)
    begin = time.process_time()
    problem = FAMILIES[asked.family](asked.n)
    problem = written(problem) if asked.written else problem
    building, begin = time.process_time() - begin, time.process_time()
    result = dt.solve(problem, TemplatePricing(), time_limit=LIMIT, gap=1e-6, log=False)
    solving = time.process_time() - begin
    unit = 1 if sys.platform == "darwin" else 1024
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9
    limit = -result.trace[-1].lagrangian
    objective = float("nan") if result.objective is None else result.objective
    return Answer(objective, limit, _bound(result), building, solving, memory)


def _bound(result: dt.Result) -> str:
    if result.bound is None:
        return "-"
    error = "" if result.bound_error is None else f" ({result.bound_error:,.2f})"
    return f"{result.bound:,.2f} {result.bound_kind.value}{error}"


def run(
    sizes: Sequence[int] = SIZES, *, families: Sequence[str] = tuple(FAMILIES), written: bool = False
) -> ResultTable:
    """All families, one size after the other."""
    table = ResultTable(
        "stated_families",
        "Families of stated blocks, one thread",
        [
            "family",
            "n",
            "objective",
            "columns allow",
            "below it by",
            "bound (standard error)",
            "model, CPU s",
            "solve, CPU s",
            "GB",
        ],
    )
    for family in families:
        for n in sizes:
            (a,) = each(answered, [Asked(family, n, written)], 1)
            below = f"{100.0 * (a.limit - a.objective) / abs(a.limit):.3f} %"
            numbers = [f"{a.objective:,.2f}", f"{a.limit:,.2f}", below, a.bound]
            seconds = [f"{number:.2f}" for number in (a.building, a.solving, a.memory)]
            table.rows.append([family, f"{n:,}", *numbers, *seconds])
    table.reading = "*Columns allow*: no choice of the columns found is beyond it; others may be."
    return table


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stated_families", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), metavar="N")
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), choices=FAMILIES)
    parser.add_argument("--written", action="store_true", help="as a program with arrays of indices")
    options = parser.parse_args()
    run(options.sizes, families=options.families, written=options.written).show(Console(width=150))


if __name__ == "__main__":
    main()

"""Two families of stated blocks with other structure than water, and what column generation makes of few.

    python -m benchmarks.stated_families --sizes 100 1000 10000 100000

*Offers*: a number in the objective, with a worth of its own for each block, and an integer among the
inputs; two budgets. *Blends*: two networks per block, one of them under a floor that is the block's own;
three stocks. Networks of made-up weights (2x16, float32), one thread, every run in a process of its own,
until it ends by itself.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from rich.console import Console
from torch import nn

import dovetail as dt
from benchmarks.parallel import each
from dovetail.methods.template_pricing import TemplatePricing
from dovetail.run.context import Method
from dovetail_study.problems.networks import build
from dovetail_study.table import ResultTable

SIZES = (100, 1_000, 10_000)
LIMIT = 900.0
"""Seconds; template pricing ends by itself."""
COLUMN_LIMIT = 60.0
"""Seconds of column generation, which goes on as long as it may."""
EVEN, HAIR = 0.2, 1e-3
"""Of each ingredient, two thirds of what there is; its quality, less a hair, is the floor of a batch."""
MOST_COLUMNS = 1_000
"""Blocks beyond which column generation, one LP over all of them, is not asked."""


def offers(n: int) -> dt.Problem:
    """A discount and a number of letters for each customer; what they buy is worth something of its own."""
    rng, problem = np.random.default_rng(0), dt.Problem(sense="max")
    price = rng.uniform(5.0, 20.0, n)
    made = problem.add_template(
        n,
        {
            "about": dt.Family(fixed=rng.standard_normal((n, 2))),
            "letters": dt.Family(upper=3.0, integer=True),
            "discount": dt.Family(upper=1.0),
            "spend": dt.Family(),
            "buys": dt.Family(lower=-np.inf, cost=rng.uniform(0.5, 2.0, n)),
        },
        rows=[dt.FamilyRow({"spend": 1.0, "discount": -price}, lower=0.0, upper=0.0, name="paid")],
        coupling=[
            dt.FamilyRow({"spend": 1.0}, upper=2.0 * n, name="budget"),
            dt.FamilyRow({"letters": 1.0}, upper=0.8 * n, name="print"),
        ],
    )
    problem.add_predictor(_network(4, 3), made["about", "letters", "discount"], made["buys"], name="uplift")
    return problem


def blends(n: int) -> dt.Problem:
    """Three ingredients for each batch: its quality has a floor, its yield a worth, the stocks are shared."""
    rng, problem = np.random.default_rng(1), dt.Problem(sense="max")
    networks = {"quality": _network(5, 11), "yield": _network(5, 12)}
    crop = rng.standard_normal((n, 2))
    even = torch.as_tensor(np.concatenate([crop, np.full((n, 3), EVEN)], axis=1), dtype=torch.float32)
    with torch.no_grad():
        floor = networks["quality"](even)[:, 0].double().numpy() - HAIR  # a blend that everybody can have
    made = problem.add_template(
        n,
        {
            "crop": dt.Family(fixed=crop),
            "share": dt.Family(upper=1.0, width=3),
            "quality": dt.Family(lower=-np.inf),
            "yield": dt.Family(lower=-np.inf, cost=rng.uniform(0.5, 2.0, n)),
        },
        rows=[dt.FamilyRow({"quality": 1.0}, lower=floor, name="floor")],
        coupling=[dt.FamilyRow({"share": 1.0}, upper=0.3 * n, name="stock")],
    )
    for name, network in networks.items():
        problem.add_predictor(network, made["crop", "share"], made[name], name=name)
    return problem


FAMILIES = {"offers": offers, "blends": blends}


def _network(inputs: int, seed: int) -> nn.Module:
    """Two hidden layers of 16, weights by chance."""
    torch.manual_seed(seed)
    return build("2x16", inputs).eval()


@dataclass(frozen=True)
class Asked:
    """One run."""

    family: str
    n: int
    method: str


@dataclass(frozen=True)
class Answer:
    """Seconds of the CPU; GB at most."""

    objective: float
    limit: float
    """No choice of the columns found is beyond it."""
    building: float
    solving: float
    memory: float


def answered(asked: Asked) -> Answer:
    """Build and solve once."""
    torch.set_num_threads(1)
    begin = time.process_time()
    problem = FAMILIES[asked.family](asked.n)
    building, begin = time.process_time() - begin, time.process_time()
    columns = asked.method == "column generation"
    method: Method = dt.ColumnGeneration() if columns else TemplatePricing()
    result = dt.solve(problem, method, time_limit=COLUMN_LIMIT if columns else LIMIT, gap=1e-6, log=False)
    solving = time.process_time() - begin
    unit = 1 if sys.platform == "darwin" else 1024
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9
    limit = -result.trace[-1].lagrangian
    objective = float("nan") if result.objective is None else result.objective
    return Answer(objective, limit, building, solving, memory)


def run(sizes: Sequence[int] = SIZES) -> ResultTable:
    """All families, one size after the other."""
    table = ResultTable(
        "stated_families",
        "Two families of stated blocks, one thread",
        [
            "family",
            "n",
            "method",
            "objective",
            "columns allow",
            "below it by",
            "model, CPU s",
            "solve, CPU s",
            "GB",
        ],
    )
    for family in FAMILIES:
        for n in sizes:
            for method in ("template pricing", *(["column generation"] if n <= MOST_COLUMNS else [])):
                (a,) = each(answered, [Asked(family, n, method)], 1)
                below = f"{100.0 * (a.limit - a.objective) / abs(a.limit):.3f} %"
                numbers = [f"{a.objective:,.2f}", f"{a.limit:,.2f}", below]
                seconds = [f"{number:.2f}" for number in (a.building, a.solving, a.memory)]
                table.rows.append([family, f"{n:,}", method, *numbers, *seconds])
    table.reading = "*Columns allow*: no choice of the columns found is beyond it; others may be."
    return table


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stated_families", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), metavar="N")
    run(parser.parse_args().sizes).show(Console(width=150))


if __name__ == "__main__":
    main()

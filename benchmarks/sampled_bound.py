"""How far many blocks are from the best there is: the Lagrangian bound, sampled.

    python -m benchmarks.sampled_bound --sizes 2000 10000 --blocks 200

At the final prices no point is better than the rows' price plus the sum of all blocks' least costs (weak
duality). Pricing has found a cost for every block that may not be the least. For some blocks, drawn by
chance, the least is proved by branch and bound: the mean difference times the number of blocks corrects the
sum, with a standard error, at a cost that does not grow with n. Water, one thread.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass

import numpy as np
from rich.console import Console

import dovetail as dt
from benchmarks.many_blocks import BUDGET, PER_BUDGET, SEED, many_blocks
from dovetail.core.arrays import FloatArray
from dovetail.decomposition import TemplatePricing
from dovetail.decomposition.method import template_prices
from dovetail.methods.component_prices.coupled_problem import CoupledProblem
from dovetail.methods.relu_branching.search import ReluSearch, SearchOptions
from dovetail.run.budget import Budget
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail_study.problems.water import Judge, formulate, train
from dovetail_study.table import ResultTable

TOLERANCE = 1e-4
"""Of a block's least cost, where a sample is worth 1."""
SECONDS = 600.0
"""For all searches of one size."""


class Priced:
    """Template pricing that leaves its prices behind."""

    name = "template-pricing"

    def __init__(self) -> None:
        self.prices, self.costs = np.zeros(0), np.zeros(0)

    def solve(self, context: SolveContext) -> MethodOutcome:
        """As the method does."""
        outcome = TemplatePricing().solve(context)
        run = context.once(template_prices)
        self.prices = run.prices()
        self.costs = run.known_costs(self.prices)
        return outcome


@dataclass(frozen=True)
class Estimate:
    """Of the Lagrangian bound, in samples that are potable."""

    potable: int
    bound: float
    error: float
    """One standard error."""
    proved: int
    """Blocks whose least cost is known to the tolerance."""
    seconds: float


def estimate(n: int, blocks: int, judge: Judge) -> Estimate:
    """Solve once, then search `blocks` of the blocks at the final prices."""
    instance, method = many_blocks(n, judge), Priced()
    result = dt.solve(instance.problem, method, time_limit=SECONDS, log=False)
    chosen = np.random.default_rng(SEED).choice(n, min(blocks, n), replace=False)
    some = formulate(instance.samples[chosen], judge.network, judge.training)
    begin = time.process_time()
    least, closed = _least_costs(some.problem, method.prices)
    more = method.costs[chosen] - least
    room = BUDGET * max(1.0, n / PER_BUDGET)
    bound = float(method.prices.sum()) * room - float(method.costs.sum()) + n * float(more.mean())
    error = n * float(more.std(ddof=1)) / np.sqrt(len(more)) * np.sqrt(1.0 - len(more) / n)
    potable = instance.counts(result).potable
    return Estimate(potable, bound, float(error), closed, time.process_time() - begin)


def _least_costs(problem: dt.Problem, prices: FloatArray) -> tuple[FloatArray, int]:
    """(blocks,) proved from below, and how many of them are closed."""
    coupled = CoupledProblem.of(problem)
    assert coupled is not None
    budget, found, closed = Budget(SECONDS), [], 0
    for part in coupled.at(prices).parts:
        if part.targets is None:
            found.append(part.bounds())
            closed += len(found[-1])
            continue
        search = ReluSearch(part.targets, SearchOptions(batch=1024, tolerance=TOLERANCE))
        ended = search.run(budget)
        found.append(part.bounds(search.lower.cpu().numpy()))
        closed += len(found[-1]) if ended == "closed" else 0
    return np.concatenate(found), closed


def main() -> None:
    import torch

    parser = argparse.ArgumentParser(prog="python -m benchmarks.sampled_bound", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[2_000, 10_000], metavar="N")
    parser.add_argument("--blocks", type=int, default=200)
    parser.add_argument("--network", default="2x16")
    options = parser.parse_args()
    torch.set_num_threads(1)
    judge = train(options.network, allow_constant=True, epochs=20)
    table = ResultTable(
        "sampled_bound",
        f"Water, {options.network}: the Lagrangian bound, {options.blocks} blocks sampled, one thread",
        ["n", "potable", "bound", "standard error", "below it by", "proved", "CPU s of the proof"],
    )
    for n in options.sizes:
        e = estimate(n, options.blocks, judge)
        below = f"{100.0 * (e.bound - e.potable) / e.bound:.2f} %"
        counts = [f"{n:,}", f"{e.potable:,}", f"{e.bound:,.1f}", f"{e.error:.1f}", below]
        table.rows.append([*counts, str(e.proved), f"{e.seconds:.1f}"])
    table.show(Console(width=150))


if __name__ == "__main__":
    main()

"""Many samples through one network under few shared budgets: what becomes potable, in what time and memory.

    python -m benchmarks.many_blocks --sizes 400 2000 10000 --limit 10
    python -m benchmarks.many_blocks --sizes 100000 --method nothing      what the engine itself takes
    python -m benchmarks.many_blocks --sizes 100000 --stated              by `problem.add_template`

Water, 2x16 (or --network), look-alike data: undrinkable rows while there are enough, then rows drawn again
with noise; the 18 budgets grow with the number of samples. One thread, every size in a process of its own.
The network comes out slightly different on another processor, and the counts with it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from torch import nn

import dovetail as dt
from benchmarks.parallel import each
from benchmarks.usage import peak
from dovetail.core.arrays import FloatArray
from dovetail.run.budget import StopReason
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail_study.experiment import ResultTable
from dovetail_study.problems.water import BUDGET, Judge, Water, formulate, train

SIZES = (400, 2_000, 10_000)
LIMIT = 10.0
"""Seconds of a solve, reading the problem included."""
PER_BUDGET = 400
"""Samples that share the paper's budget: with n samples it is n / 400 times as large, and never smaller."""
NOISE = 0.3
"""Standard deviations, on rows that are drawn again."""
SEED = 0


class Nothing:
    """Offers what nothing done is worth, and ends: what is left of the time is the engine's own."""

    name = "nothing"

    def solve(self, context: SolveContext) -> MethodOutcome:
        """The samples as they are; they are the sides of the first rows."""
        (block,), program = context.problem.blocks, context.problem.stated
        x = np.zeros(program.n_columns)
        x[block.inputs] = program.row_lower[: block.inputs.size].reshape(block.inputs.shape)
        context.incumbent.offer(x, "nothing")
        return MethodOutcome(StopReason.STALLED, 1)


@dataclass(frozen=True)
class Asked:
    """One run."""

    n: int
    network: str
    method: str
    limit: float
    stated: bool = False
    """Whether the samples are said to be a template, or written out as a program."""
    device: str | None = None


@dataclass(frozen=True)
class Answer:
    """What came of it; seconds are of the CPU where they are not said to be of the wall."""

    untouched: int
    potable: int
    status: str
    bound: float | None
    building: float
    solving: float
    wall: float
    before: float
    """GB at most before the model was built: libraries, training."""
    memory: float
    """GB at most."""


def many_blocks(n: int, judge: Judge) -> Water:
    """`n` undrinkable samples, budgets in proportion."""
    return formulate(_samples(n, judge), judge.network, judge.training, budget=_budget(n))


def stated(n: int, judge: Judge) -> Water:
    """The same as a template."""
    samples = _samples(n, judge)
    problem = _template(samples, judge.network, _budget(n))
    (template,) = problem.templates
    columns = template["x"].columns, template["potable"].columns[:, 0]
    return Water(problem, judge.network, judge.training, samples, *columns)


@dataclass(frozen=True)
class Usable:
    """What shards are drawn and judged by: it travels."""

    network: nn.Module
    undrinkable: FloatArray


def usable(judge: Judge) -> Usable:
    """Of a judge."""
    return Usable(judge.network, judge.X[judge.labels == 0])


def shard_of(by: Usable, n: int, shards: int, number: int) -> dt.Problem:
    """One of so many shards of `n` samples, drawn by its number; the budgets are those of all."""
    border = np.linspace(0, n, shards + 1).round().astype(int)
    rng = np.random.default_rng([SEED, number])
    drawn = by.undrinkable[rng.choice(len(by.undrinkable), border[number + 1] - border[number], replace=True)]
    return _template(drawn + NOISE * rng.standard_normal(drawn.shape), by.network, _budget(n))


def _template(samples: FloatArray, network: nn.Module, budget: float) -> dt.Problem:
    problem, width = dt.Problem(sense="max"), samples.shape[1]
    template = problem.add_template(
        len(samples),
        {
            "potable": dt.Family(upper=1.0, cost=1.0, integer=True),
            "x": dt.Family(lower=-np.inf, width=width),
            "up": dt.Family(width=width),
            "down": dt.Family(width=width),
        },
        rows=[dt.FamilyRow({"x": 1.0, "up": -1.0, "down": 1.0}, samples, samples, name="treatment")],
        coupling=[dt.FamilyRow({side: 1.0}, upper=budget, name=f"budget_{side}") for side in ("up", "down")],
    )
    problem.add_predictor(
        network, template["x"], template["potable"],
        output_type="classification", threshold=0.0, name="potability",
    )  # fmt: skip
    return problem


def _budget(n: int) -> float:
    return BUDGET * max(1.0, n / PER_BUDGET)


def _samples(n: int, judge: Judge) -> FloatArray:
    rng = np.random.default_rng(SEED)
    undrinkable = np.flatnonzero(judge.labels == 0)
    if n <= undrinkable.size:
        return judge.X[rng.choice(undrinkable, n, replace=False)]
    drawn = judge.X[rng.choice(undrinkable, n, replace=True)]
    return drawn + NOISE * rng.standard_normal(drawn.shape)


def answered(asked: Asked) -> Answer:
    """Build and solve once."""
    import torch

    torch.set_num_threads(1)
    judge = train(asked.network, allow_constant=True, epochs=20)
    judge.network.to(asked.device or "cpu")  # the check asks it where it lives
    before, begin = peak(), time.process_time()
    instance = (stated if asked.stated else many_blocks)(asked.n, judge)
    building, begin, wall = time.process_time() - begin, time.process_time(), time.perf_counter()
    method = Nothing() if asked.method == Nothing.name else asked.method
    result = dt.solve(instance.problem, method, time_limit=asked.limit, device=asked.device, log=False)
    solving, wall = time.process_time() - begin, time.perf_counter() - wall
    counts = instance.counts(result)
    return Answer(
        counts.untouched, counts.potable, result.status.value, result.bound,
        building, solving, wall, before, peak(),
    )  # fmt: skip


def run(
    sizes: Sequence[int] = SIZES,
    *,
    network: str = "2x16",
    method: str = "auto",
    limit: float = LIMIT,
    stated: bool = False,
    device: str | None = None,
) -> ResultTable:
    """One size after the other."""
    table = ResultTable(
        "many_blocks",
        f"Water, {network}, many samples: {method}, {limit:g} s each, one thread",
        ["n", "untouched", "potable", "bound", "status", "model, CPU s", "solve, CPU s", "wall s", "GB",
         "GB before"],
    )  # fmt: skip
    for n in sizes:
        (answer,) = each(answered, [Asked(n, network, method, limit, stated, device)], 1)
        bound = "-" if answer.bound is None else f"{answer.bound:,.1f}"
        seconds = (answer.building, answer.solving, answer.wall)
        table.rows.append(
            [f"{n:,}", f"{answer.untouched:,}", f"{answer.potable:,}", bound, answer.status]
            + [f"{number:.2f}" for number in (*seconds, answer.memory, answer.before)]
        )
    table.reading = (
        "*Untouched*: potable when nothing is done; they count among the potable. *GB*: the most that the "
        "process ever held, and before the model was built. Repeat with `python -m benchmarks.many_blocks`."
    )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.many_blocks", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), metavar="N")
    parser.add_argument("--network", default="2x16")
    parser.add_argument("--method", default="auto", help="a name of `dovetail list`, or nothing")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds of each solve")
    parser.add_argument("--stated", action="store_true", help="by problem.add_template")
    parser.add_argument("--device", help="cuda: where the network lives and blocks are priced")
    options = parser.parse_args()
    table = run(options.sizes, **{name: value for name, value in vars(options).items() if name != "sizes"})
    table.show(Console(width=150))


if __name__ == "__main__":
    main()

"""The place of the blocks of a problem: this process, several processes of this machine, or a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from dovetail.core.block import Block
from dovetail.core.errors import OptionError
from dovetail.decomposition.plan import TemplatePlan
from dovetail.decomposition.shard import PricingOptions
from dovetail.decomposition.share import Range
from dovetail.decomposition.shares import PointShares, ranges, recipes
from dovetail.networks.layers import Layer
from dovetail.networks.program import Program
from dovetail.run.budget import Budget
from dovetail.run.context import SolveContext
from dovetail.run.failures import users_code
from dovetail.run.guard import unguarded
from dovetail.run.processes import Cluster, LocalWorkers, NotPicklable, Recipe, Workers, process_workers

WORTH_SPREADING = 20_000
"""Number of blocks below which processes take longer to start than they save (water: three seconds, against
four of pricing)."""


@contextmanager
def shares_of(context: SolveContext, plan: TemplatePlan, options: PricingOptions) -> Iterator[PointShares]:
    """All shares; workers in other processes are ended afterwards."""
    workers, where = _hired(context, plan, options, _workers_wanted(context, plan))
    try:
        device = context.device if isinstance(workers, LocalWorkers) and context.device != "cpu" else None
        yield PointShares(workers, where, plan, context.budget, device)
        if workers.traffic.total:
            context.monitor.say(f"  {summary(workers)}")
    finally:
        workers.close()


def summary(workers: Workers) -> str:
    """The traffic, for the log."""
    traffic = workers.traffic
    said = (
        f"{workers.count} workers: {traffic.calls['smoothed']} sums of {traffic.per_call('smoothed'):,.0f} "
    )
    said += f"bytes, {traffic.total / 1e6:.2f} MB in all"
    return said + (f"; {workers.losses} lost and replaced" if workers.losses else "")


def workers_of(made: list[list[Recipe]], cluster: Cluster | None, *, on_gpu: bool, budget: Budget) -> Workers:
    """Workers with the objects of some recipes: on a cluster, here if there is one recipe, or in
    processes."""
    if cluster is not None:
        return cluster.hire(made, on_gpu=on_gpu, budget=budget)
    return LocalWorkers(made[0]) if len(made) == 1 else process_workers(made, budget)


def _hired(
    context: SolveContext, plan: TemplatePlan, options: PricingOptions, count: int
) -> tuple[Workers, list[Range]]:
    cluster, device, blocks = context.cluster, context.device or "cpu", list(context.problem.blocks)
    alone = cluster is None and count == 1
    if not alone:
        blocks = [travelling(block) for block in blocks]
    there = device if cluster is None else device.partition(":")[0]  # Ray chooses the machine
    where = ranges(plan, count)
    made = recipes(plan, where, blocks, options, there, here=device if alone else "cpu")
    try:
        workers = workers_of(made, cluster, on_gpu=there == "cuda", budget=context.budget)
        return workers, [r for mine in where for r in mine]
    except NotPicklable as reason:
        if cluster is not None:
            with users_code():  # an error of the user, who requested the cluster
                raise OptionError(
                    f"the blocks cannot be sent to the cluster ({reason}); define the predictor in a module "
                    "that its machines have as well, or leave cluster= out."
                ) from None
        context.monitor.say(f"  n_jobs: blocks stay in one process and cannot be sent to others ({reason})")
    return _hired(context, plan, options, 1)


def _workers_wanted(context: SolveContext, plan: TemplatePlan) -> int:
    if context.cluster is not None:
        return context.cluster.workers
    return context.threads if plan.count >= WORTH_SPREADING and context.device in (None, "cpu") else 1


def travelling(block: Block) -> Block:
    """A program without columns and closures, to be sent: layers are looked up here, and the owner's
    predictor itself is sent."""
    layers = block.description.layers_if_known()
    program = block.description.program_if_known(block.inputs.shape[1])
    description = replace(
        block.description,
        layers=None if layers is None else partial(_known, layers),
        program=None if program is None else partial(_program, program),
        other_forms=(),
    )
    return replace(
        block,
        predictor=unguarded(block.predictor),
        description=description,
        inputs=block.inputs[:0],
        outputs=block.outputs[:0],
        training_range=None,
    )


def _program(program: Program, inputs: int) -> Program:
    return program


def _known(layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
    return layers

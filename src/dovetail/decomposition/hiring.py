"""Where the shares of a problem live: in this process, in several of this machine, or on a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from dovetail.core.block import Block
from dovetail.core.errors import OptionError
from dovetail.decomposition.plan import TemplatePlan
from dovetail.decomposition.points import PointShares
from dovetail.decomposition.shard import PricingOptions
from dovetail.decomposition.share import Range
from dovetail.decomposition.shares import ranges, recipes
from dovetail.networks.layers import Layer
from dovetail.run.context import SolveContext
from dovetail.run.failures import users_code
from dovetail.run.guard import unguarded
from dovetail.run.processes import CannotTravel
from dovetail.run.remote_workers import LocalWorkers, Workers, process_workers

WORTH_SPREADING = 20_000
"""With fewer of them processes take longer to start than they save (water: three seconds, against four of
pricing)."""


@contextmanager
def shares_of(context: SolveContext, plan: TemplatePlan, options: PricingOptions) -> Iterator[PointShares]:
    """All shares; workers elsewhere are ended after it."""
    workers, where = _hired(context, plan, options)
    try:
        device = context.device if isinstance(workers, LocalWorkers) else None
        yield PointShares(workers, where, plan, context.budget, device)
        if workers.traffic.total:
            context.monitor.say(f"  {summary(workers)}")
    finally:
        workers.close()


def summary(workers: Workers) -> str:
    """What went to and fro, for the log."""
    traffic = workers.traffic
    said = (
        f"{workers.count} workers: {traffic.calls['smoothed']} sums of {traffic.per_call('smoothed'):,.0f} "
    )
    said += f"bytes, {traffic.total / 1e6:.2f} MB in all"
    return said + (f"; {workers.losses} lost and replaced" if workers.losses else "")


def _hired(context: SolveContext, plan: TemplatePlan, options: PricingOptions) -> tuple[Workers, list[Range]]:
    if context.cluster is not None:
        return _on_cluster(context, plan, options)
    if context.threads > 1 and plan.count >= WORTH_SPREADING and context.device in (None, "cpu"):
        try:
            return _in_processes(context, plan, options)
        except CannotTravel as reason:
            context.monitor.say(f"  n_jobs: blocks stay in one process, others cannot have them ({reason})")
    where = ranges(plan, 1)
    blocks = list(context.problem.blocks)
    device = context.device or "cpu"
    (made,) = recipes(plan, where, blocks, options, device, here=device)
    return LocalWorkers(made), where[0]


def _in_processes(
    context: SolveContext, plan: TemplatePlan, options: PricingOptions
) -> tuple[Workers, list[Range]]:
    where = ranges(plan, context.threads)
    blocks = [travelling(block) for block in context.problem.blocks]
    made = recipes(plan, where, blocks, options, "cpu")
    return process_workers(made, context.budget), [r for mine in where for r in mine]


def _on_cluster(
    context: SolveContext, plan: TemplatePlan, options: PricingOptions
) -> tuple[Workers, list[Range]]:
    assert context.cluster is not None
    where = ranges(plan, context.cluster.workers)
    device = "cpu" if context.device is None else context.device.partition(":")[0]  # which one, Ray decides
    blocks = [travelling(block) for block in context.problem.blocks]
    made = recipes(plan, where, blocks, options, device)
    try:
        workers = context.cluster.hire(made, on_gpu=device == "cuda", budget=context.budget)
    except CannotTravel as reason:
        with users_code():  # to be put right by the user, who asked for the cluster
            raise OptionError(
                f"the blocks cannot be sent to the cluster ({reason}); define the predictor in a module that "
                "its machines have as well, or leave cluster= out."
            ) from None
    return workers, [r for mine in where for r in mine]


def travelling(block: Block) -> Block:
    """No columns and no closures: layers are looked up here, and the owner's predictor itself is sent."""
    layers = block.description.layers_if_known()
    description = replace(
        block.description,
        layers=None if layers is None else partial(_known, layers),
        program=None,
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


def _known(layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
    return layers

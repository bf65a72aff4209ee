"""The option `cluster=`: checked, opened before the clock starts, and refused if the problem cannot use
it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from dovetail.core.errors import OptionError
from dovetail.decomposition.plan import FEWEST_BLOCKS, template_plan
from dovetail.run.context import Method, SolveContext
from dovetail.run.processes import Cluster


def require_cluster(cluster: object, method: Method) -> None:
    """Check the option: None, a name or an address, or the module ray; and that the method supports it."""
    if cluster is None:
        return
    if not (isinstance(cluster, str) and cluster) and getattr(cluster, "__name__", None) != "ray":
        raise OptionError(
            f'cluster is {cluster!r}; give "local", "auto", the address of a running Ray ("host:6379"), or '
            "the module ray after ray.init()."
        )
    if not getattr(method, "uses_cluster", False):
        raise OptionError(f'cluster is given, and {method.name} works in one process; use method "auto".')


def opened(cluster: object, workers: int) -> AbstractContextManager[Cluster | None]:
    """The cluster for the duration of the solve; started and ended here if it is not running."""
    if cluster is None:
        return nullcontext()
    from dovetail.run.ray_cluster import ray_cluster

    return ray_cluster(cluster, workers)


def require_blocks_for(context: SolveContext) -> None:
    """Refuse problems without equal blocks, which cannot be distributed."""
    if context.cluster is None:
        return
    if context.once(template_plan) is None:
        raise OptionError(
            f"cluster is given, and this problem cannot be distributed: it needs at least {FEWEST_BLOCKS} "
            "equal samples (up to their data) that share constraints. Leave cluster= out."
        )
    context.monitor.say(f"  cluster: {context.cluster.description}")

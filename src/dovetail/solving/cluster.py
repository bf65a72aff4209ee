"""`cluster=` of a solve: looked at, opened before the clock starts, refused where nothing would use it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from dovetail.core.errors import OptionError
from dovetail.decomposition.plan import FEWEST_BLOCKS, template_plan
from dovetail.run.context import Method, SolveContext
from dovetail.run.processes import Cluster


def require_cluster(cluster: object, method: Method) -> None:
    """None, a name or an address, or Ray itself; and a method that makes use of it."""
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
    """The cluster, for as long as the solve takes; started and ended here where nobody else has."""
    if cluster is None:
        return nullcontext()
    from dovetail.run.ray_cluster import ray_cluster

    return ray_cluster(cluster, workers)


def require_blocks_for(context: SolveContext) -> None:
    """Only blocks that are the same up to their data can be spread."""
    if context.cluster is None:
        return
    if context.once(template_plan) is None:
        raise OptionError(
            f"cluster is given, and this problem cannot be distributed: it needs at least {FEWEST_BLOCKS} "
            "equal samples (up to their data) that share constraints. Leave cluster= out."
        )
    context.monitor.say(f"  cluster: {context.cluster.description}")

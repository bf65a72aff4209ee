"""The options of `dovetail.solve`, checked before anything else.

The option `cluster=`: checked, opened before the clock starts, and refused if the problem cannot use
it.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from dovetail.core.errors import OptionError
from dovetail.core.options import require_count, require_methods, require_number, time_limit_of
from dovetail.decomposition.plan import template_plan
from dovetail.methods import METHODS
from dovetail.run.bound import DEFAULT_GAP, GapLimit
from dovetail.run.checkpoint import Checkpoint, CheckpointFile, SavedOptions
from dovetail.run.context import Method, PreparedMethod, SolveContext
from dovetail.run.environment import cores, processes
from dovetail.run.monitor import Callback
from dovetail.run.processes import Cluster
from dovetail.run.result import Result


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
            "cluster is given, and this problem cannot be distributed: it needs samples "
            "that share constraints. Leave cluster= out."
        )
    context.monitor.say(f"  cluster: {context.cluster.description}")


@dataclass(frozen=True)
class SolveOptions:
    """The options; `dovetail.solve` explains each."""

    method: Method
    time_limit: float
    """Infinite for None."""
    gap: GapLimit
    seed: int
    start: Any
    n_jobs: int
    device: str | None
    cluster: object
    callback: Callback | None
    log: TextIO | logging.Logger | None
    """The stream of the log; None for no log."""
    target: float | None = None
    log_file: Path | None = None
    about: str = ""
    """The purpose of a method chosen by name."""
    load: bool = True
    checkpoint: CheckpointFile | None = None
    name: str = ""
    """The name that a method was chosen by; "" for an object."""
    progress: Callback | None = None
    inner: bool = False
    """Whether the solve is a part of another one, which no logger hears of."""
    solutions: int = 1
    distance: float = 0.1
    verified: Any = None
    """Takes every verified solution of the search, if given."""
    again: Callable[..., Result] | None = None
    """`dovetail.solve`, for questions about the result that need another solve."""

    @classmethod
    def checked(
        cls,
        method: str | Method,
        *,
        time_limit: float | None,
        gap: float,
        absolute_gap: float,
        seed: int,
        start: Any,
        n_jobs: int,
        device: str | None,
        cluster: object,
        callback: Callback | None,
        log: bool | TextIO | logging.Logger,
        target: float | None = None,
        log_file: str | os.PathLike[str] | None = None,
        load: bool = True,
        checkpoint: object = None,
        solutions: int = 1,
        distance: float = 0.1,
        progress: object = None,
    ) -> SolveOptions:
        """The checked options, or an error that names the invalid one. `start` is read with the model."""
        chosen = METHODS.make(method) if isinstance(method, str) else _require_method(method)
        seconds = time_limit_of(time_limit)
        _require_gap(gap)
        require_number("absolute_gap", absolute_gap, at_least=0.0)
        if target is not None:
            require_number("target (an objective)", target)
        require_count("seed", seed, at_least=0)
        require_count("solutions", solutions, at_least=1)
        require_number("distance (a part of each input's range)", distance, above=0.0)
        if callback is not None and not callable(callback):
            raise OptionError(f"callback is {callback!r}; give a function of one Event.")
        place = usable_device(device)
        require_cluster(cluster, chosen)
        if not isinstance(load, (bool, np.bool_)):
            raise OptionError(f"load is {load!r}; give True or False.")
        limit = GapLimit(float(gap), float(absolute_gap))
        return cls(
            chosen, seconds, limit, int(seed), start, processes(n_jobs), place, cluster, callback,
            log_stream(log), None if target is None else float(target), _path_of(log_file),
            METHODS[method].text if isinstance(method, str) else "", bool(load),
            CheckpointFile.checked(checkpoint), method if isinstance(method, str) else "",
            solutions=int(solutions), distance=float(distance),
            progress=_progress_of(progress),
        )  # fmt: skip

    @property
    def threads(self) -> int:
        """Number of threads: at most one per core."""
        return min(self.n_jobs, cores())

    @property
    def resumed(self) -> Checkpoint | None:
        """The checkpoint that the solve continues from."""
        return self.start if isinstance(self.start, Checkpoint) else None

    @property
    def saved(self) -> SavedOptions:
        """The options that a checkpoint has; its time limit counts from the first start."""
        before = 0.0 if self.resumed is None else self.resumed.seconds
        return SavedOptions(
            before + self.time_limit, self.gap.relative, self.gap.absolute, self.target, self.seed,
            self.n_jobs, self.device, self.solutions, self.distance,
        )  # fmt: skip

    @property
    def limits(self) -> str:
        """What ends the search, in words."""
        said = [f"at most {self.time_limit:g} s"] if np.isfinite(self.time_limit) else ["no time limit"]
        said += [f"gap {100 * self.gap.relative:g} %"]
        said += [f"absolute gap {self.gap.absolute:g}"] if self.gap.absolute else []
        said += [f"target {self.target:g}"] if self.target is not None else []
        return ", ".join(said)

    def import_libraries(self) -> None:
        """Import the libraries that the solve needs."""
        import threadpoolctl  # noqa: F401
        import torch  # noqa: F401

        if isinstance(self.method, PreparedMethod):
            self.method.prepare()

    @property
    def repeatable(self) -> dict[str, object]:
        """The options that another solve needs for the same result; defaults are left out."""
        limit = self.time_limit if np.isfinite(self.time_limit) else None
        said: dict[str, object] = {"time_limit": limit, "seed": self.seed}
        said |= {"gap": self.gap.relative} if self.gap.relative != DEFAULT_GAP else {}
        said |= {"absolute_gap": self.gap.absolute} if self.gap.absolute else {}
        said |= {"target": self.target} if self.target is not None else {}
        said |= {"n_jobs": self.n_jobs} if self.n_jobs > 1 else {}
        said |= {"device": self.device} if self.device is not None else {}
        said |= {"start": ...} if self.start is not None else {}
        said |= {"solutions": self.solutions, "distance": self.distance} if self.solutions > 1 else {}
        return said


def _require_method(method: object) -> Method:
    require_methods(
        "method", method, ("solve",), 'dovetail.DualDecomposition(), or a name of "dovetail list"'
    )
    if hasattr(method, "refuses"):
        raise OptionError(f"method is {method!r}, which solves network steps, not problems.")
    if not hasattr(method, "name"):
        raise OptionError(f'method is {method!r}, which has no name; give its class one: name = "mine".')
    return method  # type: ignore[return-value]


def _require_gap(gap: float) -> None:
    """Refuse a gap of 1 or more: 5 is probably meant as 5 %."""
    require_number("gap (relative)", gap, at_least=0.0)
    if gap >= 1.0:
        raise OptionError(
            f"gap (relative) is {gap!r}, which would be {100 * gap:g} %; give a number below 1: 0.05 is 5 %. "
            "absolute_gap= is in the objective's units."
        )


def usable_device(device: Any) -> str | None:
    """The name of the device; an `OptionError` if torch cannot use it."""
    if device is None:
        return None
    import torch

    try:
        place = torch.device(device)
        float(torch.zeros(1, device=place).sum())
    except (RuntimeError, AssertionError, TypeError) as reason:
        raise OptionError(
            f"device {device!r} cannot be used ({str(reason).splitlines()[0]}); leave device= out to "
            "run where the predictors live."
        ) from None
    return str(place)


def _path_of(log_file: object) -> Path | None:
    if log_file is None:
        return None
    if not isinstance(log_file, (str, os.PathLike)) or not os.fspath(log_file):
        raise OptionError(f"log_file is {log_file!r}; give the path of a file.")
    return Path(os.fsdecode(log_file))


def open_log_file(path: Path | None) -> TextIO | None:
    """The log file, opened to append."""
    if path is None:
        return None
    try:
        return path.open("a", encoding="utf-8", errors="replace")
    except OSError as reason:
        raise OptionError(
            f"log_file {str(path)!r} cannot be written ({reason.strerror or reason}); give the path of a "
            "file in a folder that can be."
        ) from None
    except ValueError as reason:  # a null character in the path
        raise OptionError(f"log_file {str(path)!r} is no path ({reason}).") from None


def _progress_of(progress: Any) -> Callback | None:
    """The function of `progress=`; True is a live chart in a notebook, and nothing elsewhere."""
    if progress is True:
        from dovetail.report.live_chart import live_chart

        return live_chart()
    if progress is None or progress is False:
        return None
    if not callable(progress):
        raise OptionError(f"progress is {progress!r}; give True, or a function of one Event.")
    return progress  # type: ignore[no-any-return]


def log_stream(log: bool | TextIO | logging.Logger) -> TextIO | logging.Logger | None:
    """The stream or logger of `log=`; None for no log."""
    if isinstance(log, logging.Logger):
        return log
    if isinstance(log, (bool, np.bool_)):
        return sys.stdout if log else None
    if not callable(getattr(log, "write", None)) or "b" in getattr(log, "mode", ""):
        raise OptionError(
            f"log is {log!r}; give True, False, a logging.Logger, or a text file that is open for writing."
        )
    return log

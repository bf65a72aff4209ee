"""`dovetail.solve_shards`, as the user calls it: everything is looked at, then the shards are asked."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import torch

from dovetail.core.amounts import several
from dovetail.core.check import Violation
from dovetail.core.errors import OptionError
from dovetail.core.options import require_count, time_limit_of
from dovetail.core.problem import Problem
from dovetail.decomposition import TemplatePricing
from dovetail.decomposition.rounds import Rounds
from dovetail.decomposition.shares import Shares
from dovetail.run.budget import Budget, StopReason
from dovetail.run.environment import Interrupts, gradients, threads
from dovetail.run.monitor import Monitor
from dovetail.run.processes import CannotTravel, Recipe
from dovetail.run.remote_workers import Cluster, LocalWorkers, Workers, process_workers
from dovetail.run.stopwatch import Stopwatch
from dovetail.sharding.agreement import Agreement
from dovetail.sharding.own_share import OwnShare, ShardAnswer
from dovetail.sharding.shard_source import ShardSource
from dovetail.sharding.sharded_result import ShardedResult
from dovetail.solving.cluster import opened, require_cluster
from dovetail.solving.options import log_stream, usable_device

FOREVER = float("inf")


def solve_shards(
    build: Callable[[Any], Problem],
    shards: Iterable[int | str | os.PathLike[str]],
    *,
    out: str | os.PathLike[str],
    time_limit: float | None = 60.0,
    seed: int = 0,
    n_jobs: int = 1,
    device: str | None = None,
    cluster: Any = None,
    log: bool | TextIO = True,
) -> ShardedResult:
    """Solve blocks that come in shards, so that no process ever holds all of them.

    `shards` are numbers or paths of files. `build(data)` states the blocks of one shard, as a
    `dovetail.Problem` with one template: `data` is the number, or the array of a .npy file, which stays on
    the disk, or the path of any other file. Coupling rows of the same name are one row over all shards, and
    their sides are those of the whole. The shards are spread over `n_jobs` processes, or workers of
    `cluster` (see `dovetail.solve`), and stay there: prices go out, sums over blocks come back. Each shard
    is checked by its own predictor where it is, the coupling rows over all of them, and its values are
    written to the folder `out`, in a file of its own. `time_limit` (seconds; None: no limit), Ctrl-C and
    SIGTERM end the search; the choice, its check and the files come after it. A second Ctrl-C or SIGTERM
    leaves at once.

    >>> import tempfile
    >>> import dovetail as dt
    >>> from dovetail.testing.problems import offers_of
    >>> result = dt.solve_shards(offers_of, range(2), out=tempfile.mkdtemp(), log=False)
    >>> result.violation.within(), sorted(result.activity), result.values(1)["offer"].shape
    (True, ['budget'], (60, 1))
    """
    sources = [ShardSource.of(build, item, number) for number, item in enumerate(_listed(shards))]
    if not callable(build):
        raise OptionError(f"build is {build!r}; give a function that returns the problem of a shard.")
    seconds = time_limit_of(time_limit)
    require_count("n_jobs", n_jobs, at_least=1)
    require_count("seed", seed, at_least=0)
    device = usable_device(device)
    method = TemplatePricing()
    require_cluster(cluster, method)
    folder = _folder(out)
    jobs = min(int(n_jobs), len(sources))
    with Interrupts() as asked, opened(cluster, jobs) as there, threads(1), gradients(), torch.no_grad():
        budget = Budget(seconds)
        asked.stop(budget)
        recipes = [partial(OwnShare, source, method.pricing, device or "cpu") for source in sources]
        with _hired(recipes, jobs, there, device) as workers:
            monitor = Monitor(budget, log_stream(log))
            return _Solve(sources, workers, budget, monitor, int(seed)).run(method.rounds, folder)


class _Solve:
    """Shards that are hired, on their way to an answer."""

    def __init__(
        self, sources: list[ShardSource], workers: Workers, budget: Budget, monitor: Monitor, seed: int
    ) -> None:
        self._sources, self._workers, self._budget, self._monitor = sources, workers, budget, monitor
        self._agreed = Agreement.of(self._ask("facts"))
        shares = Shares(workers, len(sources), Budget(FOREVER))
        limit, totals = self._agreed.limit, self._agreed.totals
        self._rounds = Rounds(shares, limit, totals, budget, Stopwatch(), seed)
        monitor.say(
            f"{several(len(sources), 'shard')}, {several(sum(totals), 'block')}, "
            f"{several(workers.count, 'worker')}, {several(len(limit), 'side')} of coupling rows"
        )

    def _ask(self, call: str, *arguments: object) -> list[Any]:
        return self._workers.ask(call, [arguments] * len(self._sources), Budget(FOREVER))

    def run(self, most: int, folder: Path) -> ShardedResult:
        """Rounds, the choice, its check, the files."""
        sign = self._agreed.sign
        for done in self._rounds.all(most):
            self._monitor.say(
                f"  round {done.number + 1}: no choice of the columns found is beyond "
                f"{sign * done.value:.8g}; {self._budget.seconds:.1f} s"
            )
        reason = done.over or StopReason.STALLED
        answers = self._rounds.undisturbed(self._answers)
        violation = None if answers is None else self._agreed.violation(answers)
        objective, files = None, list[Path]()
        if answers is not None and violation is not None and violation.within():
            objective = float(np.sum([answer.objective for answer in answers]))
            files = [folder / f"shard-{number:05d}.npz" for number in range(len(answers))]
            self._workers.ask("write", [(file,) for file in files], Budget(FOREVER))
        self._monitor.say(_ending(objective, violation, folder))
        traffic, activity = self._workers.traffic, self._agreed.activity(answers or [])
        return ShardedResult(
            objective, sign * done.value, violation, activity, tuple(files), reason,
            self._rounds.count, done.number + 1, self._budget.seconds, self._workers.count,
            self._workers.losses, traffic.per_call("smoothed"), traffic.total,
        )  # fmt: skip

    def _answers(self) -> list[ShardAnswer] | None:
        return self._ask("answer") if self._rounds.choose(last=True) else None


@contextmanager
def _hired(
    recipes: Sequence[Recipe], jobs: int, cluster: Cluster | None, device: str | None
) -> Iterator[Workers]:
    """All in this process where there is one job and no cluster."""
    border = np.linspace(0, len(recipes), jobs + 1).round().astype(int)
    mine = [list(recipes[first:last]) for first, last in pairwise(border)]
    workers: Workers
    try:
        if cluster is not None:
            on_gpu = device is not None and device.startswith("cuda")
            workers = cluster.hire(mine, on_gpu=on_gpu, budget=Budget(FOREVER))
        else:
            workers = LocalWorkers(recipes) if jobs == 1 else process_workers(mine, Budget(FOREVER))
    except CannotTravel as reason:
        raise OptionError(
            f"build cannot be sent to other processes ({reason}); def it at the top of a module that they "
            "can import, or give n_jobs=1."
        ) from None
    try:
        yield workers
    finally:
        workers.close()


def _listed(shards: Any) -> list[Any]:
    if isinstance(shards, (str, bytes, os.PathLike)) or not isinstance(shards, Iterable):
        raise OptionError(f"shards is {shards!r}; give a list of paths, or range(count).")
    items = list(shards)
    if not items:
        raise OptionError("shards is empty; give a list of paths, or range(count).")
    return items


def _folder(out: Any) -> Path:
    if not isinstance(out, (str, os.PathLike)):
        raise OptionError(f"out is {out!r}; give the path of a folder.")
    folder = Path(out).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as reason:
        raise OptionError(f"out {folder} cannot be made a folder ({reason.strerror}).") from None
    return folder


def _ending(objective: float | None, violation: Violation | None, folder: Path) -> str:
    if violation is None:
        return "  no answer: some block has no point that its predictor confirms"
    if objective is None:
        return f"  no answer: the choice misses {violation.missed}"
    return f"  objective {objective:.8g}, checked by every shard's own predictor; values are in {folder}"

"""`dovetail.solve_shards`: checks its arguments, then runs the shards."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import torch

from dovetail.core.arrays import FloatArray
from dovetail.core.check import Violation, Worst
from dovetail.core.errors import ModelError, OptionError
from dovetail.core.options import require_count, time_limit_of
from dovetail.core.problem import Problem
from dovetail.core.words import several
from dovetail.decomposition import TemplatePricing
from dovetail.decomposition.hiring import workers_of
from dovetail.decomposition.rounds import Rounds
from dovetail.decomposition.shares import Shares
from dovetail.run.budget import Budget, StopReason
from dovetail.run.environment import Interrupts, gradients, threads
from dovetail.run.monitor import Monitor
from dovetail.run.processes import Cluster, NotPicklable, Recipe, Workers
from dovetail.run.work import Stopwatch
from dovetail.sharding.own_share import OwnShare, ShardAnswer, ShardFacts, ShardSource
from dovetail.solving.cluster import opened, require_cluster
from dovetail.solving.options import log_stream, usable_device


@dataclass(frozen=True, eq=False, repr=False)
class ShardedResult:
    """The result of `solve_shards`. The values stay in files, one for each shard.

    >>> import tempfile
    >>> import dovetail as dt
    >>> from dovetail.testing.problems import offers_of
    >>> result = dt.solve_shards(offers_of, range(2), out=tempfile.mkdtemp(), log=False)
    >>> result.activity["budget"] <= 20.0 + 1e-6, result.blocks, [file.name for file in result.files]
    (True, 120, ['shard-00000.npz', 'shard-00001.npz'])
    """

    objective: float | None
    """In the sense of the problem; None without a choice that passes the check."""
    limit: float
    """No choice of the columns found is beyond it: an estimate, because other columns may exist."""
    violation: Violation | None
    """Of the choice, by the shards' own predictors and over all shards; None without a choice."""
    activity: dict[str, float]
    """Activities of the coupling rows, by name."""
    files: tuple[Path, ...]
    """The file of each shard, in order; none without an answer."""
    stop_reason: StopReason
    """Why the search ended: "stalled" if more rounds brought nothing, "time" or "interrupt"."""
    blocks: int
    rounds: int
    seconds: float
    workers: int
    losses: int
    """Number of workers that were lost and replaced."""
    step_bytes: float
    """Bytes that travelled, both ways and over all workers, per sum over all blocks."""
    total_bytes: int

    def values(self, shard: int) -> dict[str, FloatArray]:
        """(blocks, width) values of each family of a shard, by its place in the list."""
        with np.load(self.files[shard]) as file:
            return {name: file[name] for name in file.files}

    def __repr__(self) -> str:
        found = "no answer" if self.objective is None else f"objective {self.objective:.8g}, verified"
        return (
            f"<ShardedResult: {found}; no choice of the columns found is beyond {self.limit:.8g}; "
            f"{self.blocks:,} blocks in {len(self.files)} files, {self.rounds} rounds, {self.seconds:.1f} s>"
        )


SAME = 1e-12
"""Relative tolerance for limits that shards computed separately."""


@dataclass(frozen=True, eq=False)
class Agreement:
    """The facts of all shards, which must agree."""

    facts: tuple[ShardFacts, ...]

    @classmethod
    def of(cls, facts: Sequence[ShardFacts]) -> Agreement:
        """A `ModelError` names the first shard that differs."""
        first = facts[0]
        for other in facts[1:]:
            for about in dict.fromkeys((*first.stated, *other.stated)):
                _require_same(about, first, first.stated.get(about), other, other.stated.get(about))
            _require_same("sides of rows", first, first.row, other, other.row)
            for side in ("lower", "upper"):
                one, two = getattr(first, side), getattr(other, side)
                k = int(np.argmin(np.isclose(one, two, rtol=SAME, atol=0.0)))
                if not np.isclose(one[k], two[k], rtol=SAME, atol=0.0):
                    about = f"{side} of row {first.rows[k]}, which is that of all shards together,"
                    _require_same(about, first, float(one[k]), other, float(two[k]))
        return cls(tuple(facts))

    @property
    def totals(self) -> list[int]:
        """Number of blocks of each shard."""
        return [of_one.blocks for of_one in self.facts]

    @property
    def sign(self) -> float:
        """1 when minimising, -1 when maximising."""
        return 1.0 if self.facts[0].stated["sense"] == "min" else -1.0

    @property
    def limit(self) -> FloatArray:
        """(sides,) limits for all shards together, less the use of data."""
        first = self.facts[0]
        row = np.array(first.row, dtype=np.int64)
        stated = np.where(first.sign > 0.0, first.upper[row], -first.lower[row])
        return np.asarray(stated - np.sum([stated - of_one.limit for of_one in self.facts], axis=0))

    def activity(self, answers: Sequence[ShardAnswer]) -> dict[str, float]:
        """Activities of the coupling rows by name; empty without answers."""
        if not answers:
            return {}
        total = np.sum([answer.activity for answer in answers], axis=0)
        return dict(zip(self.facts[0].rows, total.tolist(), strict=True))

    def violation(self, answers: Sequence[ShardAnswer]) -> Violation:
        """The violation of the answer as a whole: the largest of every kind over all shards, and of the
        coupling rows."""
        first, worst = self.facts[0], {}
        for kind in (field.name for field in fields(Violation)):
            found = [
                replace(each, name=f"{of_one.name}: {each.name}") if each.name else each
                for of_one, answer in zip(self.facts, answers, strict=True)
                for each in [getattr(answer.violation, kind)]
            ]
            unknown = [each for each in found if np.isnan(each.amount)]
            worst[kind] = unknown[0] if unknown else max(found, key=lambda each: each.amount)
        total = np.array(list(self.activity(answers).values()))
        beyond = np.maximum(first.lower - total, total - first.upper)
        k = int(np.argmax(beyond))
        if beyond[k] > worst["rows"].amount:
            worst["rows"] = Worst(float(beyond[k]), first.rows[k])
        return Violation(**worst)


def _require_same(about: str, first: ShardFacts, one: object, other: ShardFacts, two: object) -> None:
    if one != two:
        raise ModelError(
            f"{other.name}: its {about} {'is' if two is not None else 'is missing:'} {two!r}, and that of "
            f"{first.name} is {one!r}; all shards must state the same."
        )


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
    """Solve equal blocks in shards, so that no process holds all of them (docs/scale.md).

    Coupling constraints of the same name are one constraint over all shards; every shard states the limits
    of the whole. Each worker keeps its shards; prices travel to the workers, sums over blocks travel back.
    Each shard is checked by its own predictor, the coupling constraints over all shards. A time limit,
    Ctrl-C or SIGTERM ends the search; the choice, its check and the files follow. A second Ctrl-C or SIGTERM
    ends everything at once.

    `shards` are numbers or paths of files. `build(data)` returns the blocks of one shard as a
    `dovetail.Problem` with one template; `data` is the number, the memory-mapped array of a .npy file, or
    the path of any other file. Values are written to the folder `out`, one file per shard. `time_limit` is
    in seconds (None: no limit). The shards are distributed over `n_jobs` processes, or workers of `cluster`
    (see `dovetail.solve`).

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
    """The run of `solve_shards` over its workers."""

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
            f"{several(workers.count, 'worker')}, {several(len(limit), 'side')} of coupling constraints"
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
    """The workers; all in this process with one job and no cluster."""
    border = np.linspace(0, len(recipes), jobs + 1).round().astype(int)
    mine = [list(recipes[first:last]) for first, last in pairwise(border)]
    on_gpu = device is not None and device.startswith("cuda")
    try:
        workers = workers_of(mine, cluster, on_gpu=on_gpu, budget=Budget(FOREVER))
    except NotPicklable as reason:
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
        return "  no solution: the predictor of a block confirms none of its columns"
    if objective is None:
        return f"  no solution: the choice violates {violation.missed}"
    return f"  objective {objective:.8g}, checked by every shard's own predictor; values are in {folder}"

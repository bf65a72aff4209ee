"""`dovetail.solve_shards`: checks its arguments, then runs the shards.

A shard with its data source: the blocks that it states, and its share of the run.

The blocks are made on the first call, so that a data error is an answer and not a lost worker; after a loss
they are made again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from io import BytesIO
from itertools import pairwise
from numbers import Integral
from pathlib import Path
from typing import Any, TextIO
from zipfile import ZipFile

import numpy as np
import torch

from dovetail.core.arrays import FloatArray
from dovetail.core.check import Checker, Violation, Worst, check
from dovetail.core.errors import DovetailError, ModelError, OptionError
from dovetail.core.files import write_file
from dovetail.core.options import require_count, time_limit_of
from dovetail.core.problem import Problem
from dovetail.core.stated_program import CouplingRows
from dovetail.core.words import several
from dovetail.decomposition import TemplatePricing
from dovetail.decomposition.hiring import workers_of
from dovetail.decomposition.plan import TemplatePlan, plan_of
from dovetail.decomposition.rounds import Rounds
from dovetail.decomposition.shard import PricingOptions, usual_spread
from dovetail.decomposition.share import Range, Share, make_share
from dovetail.decomposition.shares import Shares, point_of
from dovetail.run.budget import Budget, StopReason
from dovetail.run.environment import Interrupts, gradients, processes, threads
from dovetail.run.monitor import Monitor
from dovetail.run.processes import Cluster, NotPicklable, Recipe, Workers
from dovetail.run.work import Stopwatch
from dovetail.solving.options import log_stream, opened, require_cluster, usable_device
from dovetail.structure.components import CouplingSides
from dovetail.structure.structure import Structure

Build = Callable[[Any], Problem]


@dataclass(frozen=True)
class ShardSource:
    """The data of one shard: a number, an array in a file, or a file of its own."""

    build: Build
    item: int | Path
    number: int

    @classmethod
    def of(cls, build: Build, item: Any, number: int) -> ShardSource:
        """The source for an item of the list of shards."""
        if isinstance(item, Integral) and not isinstance(item, bool):
            return cls(build, int(item), number)
        if isinstance(item, (str, os.PathLike)):
            return cls(build, Path(item), number)
        raise OptionError(f"shards[{number}] is {item!r}; give the path of a file, or a number.")

    @property
    def name(self) -> str:
        """The name in messages."""
        return f"shard {self.number} ({self.item})" if isinstance(self.item, Path) else f"shard {self.item}"

    def data(self) -> Any:
        """The number itself, a .npy file as a memory-mapped array, any other file by its path."""
        if not isinstance(self.item, Path):
            return self.item
        try:
            if self.item.stat().st_size == 0:
                raise ValueError("it is empty")
            return np.load(self.item, mmap_mode="r") if self.item.suffix == ".npy" else self.item
        except (OSError, ValueError, EOFError) as reason:
            raise ModelError(
                f"{self.name}: the file cannot be read ({reason}); write it again, or leave it out of shards."
            ) from None

    def problem(self) -> Problem:
        """The problem that `build` returns; its exceptions name the shard."""
        data = self.data()
        try:
            made = self.build(data)
        except DovetailError as reason:
            raise type(reason)(f"{self.name}: {reason}") from reason
        except Exception as reason:
            reason.add_note(f"raised by build for {self.name}")
            raise
        if not isinstance(made, Problem):
            raise ModelError(f"{self.name}: build returned {type(made).__name__}; return a dovetail.Problem.")
        return made


@dataclass(frozen=True, eq=False)
class ShardFacts:
    """The properties in which shards must agree, and their use of the rows without any decision."""

    name: str
    blocks: int
    stated: dict[str, str]
    """A description that must be equal for all: sense, families, rows, predictors."""
    rows: tuple[str, ...]
    """Names of the coupling rows."""
    lower: FloatArray
    """(rows,) lower limits for all shards together."""
    upper: FloatArray
    sign: FloatArray
    """(sides,) as in `CouplingSides`."""
    row: tuple[int, ...]
    """(sides,) the row of each side."""
    limit: FloatArray
    """(sides,) the limit less the use of data."""


@dataclass(frozen=True, eq=False)
class ShardAnswer:
    """A shard's part of the answer, checked by its own predictors."""

    objective: float
    activity: FloatArray
    """(rows,) the shard's part of the coupling rows."""
    violation: Violation
    """The violation without coupling rows."""


class OwnShare:
    """A shard with its source; other calls go to the share itself."""

    def __init__(self, source: ShardSource, options: PricingOptions, device: str) -> None:
        self._source, self._options, self._device = source, options, device
        self._point: FloatArray | None = None

    def __getattr__(self, call: str) -> Any:
        if call.startswith("_"):  # the class lacks no attribute of its own; copies and pickles ask for others
            raise AttributeError(call)
        return getattr(self._share, call)

    @cached_property
    def _problem(self) -> Problem:
        problem, name = self._source.problem(), self._source.name
        if problem.stated.host is not None or len(problem.templates) != 1:
            has = f"{len(problem.templates)} templates" if problem.stated.host is None else "a Mip"
            raise ModelError(
                f'{name}: its problem has {has}; state one template in a dovetail.Problem(sense="...") and '
                "nothing else."
            )
        return problem

    @cached_property
    def _plan(self) -> TemplatePlan:
        plan = plan_of(Structure(self._problem))
        if plan is None or len(plan.programs) != 1:
            raise ModelError(
                f"{self._source.name}: its blocks cannot be priced all at once; there must be constraints "
                "over all blocks, and networks over whole families, none of which reads another's "
                "outputs."
            )
        return plan

    @cached_property
    def _where(self) -> Range:
        count = self._plan.count
        return Range(0, 0, count, count)

    @cached_property
    def _share(self) -> Share:
        (program,), blocks = self._plan.programs, list(self._problem.blocks)
        spread = usual_spread(program, blocks, self._device)
        return make_share(program, self._where, blocks, self._options, self._device, spread)

    @cached_property
    def _coupling(self) -> list[CouplingRows]:
        return [part for part in self._problem.stated.rows if isinstance(part, CouplingRows)]

    def facts(self) -> ShardFacts:
        """Read the data, state the blocks, and return the facts."""
        problem, sides = self._problem, self._plan.sides
        lower, upper = (
            np.concatenate(
                [np.broadcast_to(part.sides[k], (1, part.size)).ravel() for part in self._coupling]
            )
            for k in (0, 1)
        )
        first = problem.stated.n_rows - len(lower)  # the coupling rows are the last rows of a template
        return ShardFacts(
            self._source.name, self._plan.count, _described(problem),
            tuple(problem.stated.row_name(first + k) for k in range(len(lower))),
            lower, upper, sides.sign, tuple((sides.row - first).tolist()), sides.limit,
        )  # fmt: skip

    def answer(self) -> ShardAnswer:
        """The choice as a point with outputs by the shard's own predictors, and its check."""
        alone = self._problem.uncoupled()
        point = point_of(self._plan, [self._where], [self._share.chosen()])
        point, _ = Checker(alone).completed(alone.stated.clipped(point))
        activity = np.concatenate([part.activity(point) for part in self._coupling])
        self._point = point
        return ShardAnswer(alone.stated.objective(point), activity, check(alone, point))

    def write(self, path: Path) -> None:
        """The values of the last answer, by family."""
        assert self._point is not None
        values = self._problem.templates[0].values(self._point)
        letter = BytesIO()
        with ZipFile(letter, "w") as file:  # the format of np.savez, in which no array may be called "file"
            for name, array in values.items():
                with file.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.ascontiguousarray(array))
        write_file(path, letter.getvalue())


def _described(problem: Problem) -> dict[str, str]:
    """A description of each aspect that must be equal in all shards."""
    template = problem.templates[0]
    families = [
        f"{f.label} ({f.width}{', integer' if f.integer else ''})" for f in template.families.values()
    ]
    said = {
        "sense": problem.stated.sense,
        "families": ", ".join(families),
        "rows": ", ".join(f"{row.label} ({row.width})" for row in template.rows),
        "coupling rows": ", ".join(f"{row.label} ({row.width})" for row in template.coupling),
    }
    for block in problem.blocks:
        kind = f"classes from {block.threshold:g}" if block.classifies else "values"
        said[f"predictor {block.name}"] = f"{block.inputs.shape[1]} -> {block.outputs.shape[1]}, {kind}"
    return said


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
    """The objective in the sense of the problem; None without a choice that passes the check."""
    limit: float
    """No choice of the columns found is better: an estimate, because other columns may exist."""
    violation: Violation | None
    """The violation of the choice, by the shards' own predictors and over all shards; None without a
    choice."""
    activity: dict[str, float]
    """Activities of the coupling rows, by name."""
    files: tuple[Path, ...]
    """The file of each shard, in order; none without an answer."""
    stop_reason: StopReason
    """Why the search ended: "stalled" if further rounds gained nothing, "time" or "interrupt"."""
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
                    about = f"{side} of row {first.rows[k]}, which is the limit for all shards together,"
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
    def sides(self) -> CouplingSides:
        """The sides with limits for all shards together, less the use of data."""
        first = self.facts[0]
        row = np.array(first.row, dtype=np.int64)
        stated = np.where(first.sign > 0.0, first.upper[row], -first.lower[row])
        limit = np.asarray(stated - np.sum([stated - of_one.limit for of_one in self.facts], axis=0))
        return CouplingSides(row, first.sign, limit)

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

    Coupling constraints of the same name are one constraint over all shards; every shard states the limits of
    the whole. Each worker keeps its shards; prices travel to the workers, sums over blocks travel back. Each
    shard is checked by its own predictor, the coupling constraints over all shards. A time limit, Ctrl-C or
    SIGTERM ends the search; the choice, its check and the files follow. A second Ctrl-C or SIGTERM ends the
    program at once.

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
    sources = [ShardSource.of(build, item, number) for number, item in enumerate(_shard_list(shards))]
    if not callable(build):
        raise OptionError(f"build is {build!r}; give a function that returns the problem of a shard.")
    seconds = time_limit_of(time_limit)
    require_count("seed", seed, at_least=0)
    device = usable_device(device)
    method = TemplatePricing()
    require_cluster(cluster, method)
    folder = _folder(out)
    jobs = min(processes(n_jobs), len(sources))
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
        self._agreed = Agreement.of(self._call_workers("facts"))
        shares = Shares(workers, len(sources), Budget(FOREVER))
        sides, totals = self._agreed.sides, self._agreed.totals
        self._rounds = Rounds(shares, sides, totals, budget, Stopwatch(), seed)
        monitor.say(
            f"{several(len(sources), 'shard')}, {several(sum(totals), 'block')}, "
            f"{several(workers.count, 'worker')}, {several(sides.count, 'side')} of coupling constraints"
        )

    def _call_workers(self, call: str, *arguments: object) -> list[Any]:
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
        self._monitor.say(_closing_line(objective, violation, folder))
        traffic, activity = self._workers.traffic, self._agreed.activity(answers or [])
        return ShardedResult(
            objective, sign * done.value, violation, activity, tuple(files), reason,
            self._rounds.count, done.number + 1, self._budget.seconds, self._workers.count,
            self._workers.losses, traffic.per_call("smoothed"), traffic.total,
        )  # fmt: skip

    def _answers(self) -> list[ShardAnswer] | None:
        return self._call_workers("answer") if self._rounds.choose(last=True) else None


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


def _shard_list(shards: Any) -> list[Any]:
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


def _closing_line(objective: float | None, violation: Violation | None, folder: Path) -> str:
    if violation is None:
        return "  no solution: the predictor of a block confirms none of its columns"
    if objective is None:
        return f"  no solution: the choice violates {violation.missed}"
    return f"  objective {objective:.8g}, checked by every shard's own predictor; values are in {folder}"

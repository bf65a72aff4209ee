"""One run: an instance, a method, a seed. An experiment is a list of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

SEEDS = (42, 123, 456, 789, 1024)
"""The paper's."""
TIME_LIMIT = 300.0
"""The paper's, in seconds, for every run."""
QUICK_SEEDS, QUICK_LIMIT = (42,), 1.0
"""To see that everything runs, not to measure."""
FEW = 3
"""Seeds for what takes minutes a run: enough for a spread, three fifths of the time."""
THREADS = 1
"""Of every solve: so that runs at the same time do not wait for each other."""
INIT = "he"
"""How the networks of a cell that does not say it are initialised."""

Record = dict[str, Any]
"""One line of the results file: the run's cell, seed and method, and what came out."""


@dataclass(frozen=True)
class BenchSettings:
    """What the user asked for."""

    quick: bool = False
    data: Path | None = None
    seeds: tuple[int, ...] = SEEDS
    time_limit: float = TIME_LIMIT
    baseline_limit: float = TIME_LIMIT
    """Seconds in which SCIP solves what big-M has written."""
    writing_limit: float = TIME_LIMIT
    """Seconds more, for writing it."""
    memory_limit: float | None = None
    """GB of memory that a run of big-M may take; None: what the method itself takes for the limit."""
    methods: tuple[str, ...] | None = None
    """Only these; None for all that the experiment compares."""
    networks: tuple[str, ...] | None = None
    """Only cells with these networks; None for all."""
    device: str | None = None


@dataclass(frozen=True)
class Run:
    """What to solve and how."""

    experiment: str
    cell: tuple[tuple[str, Any], ...]
    """Which instance: names and values, such as ("network", "2x16")."""
    method: str
    seed: int
    given: str | None = field(default=None, compare=False)
    """The key of a run that must have found a point before this one is made."""
    times: float = field(default=1.0, compare=False)
    """How many times its seconds it has, where the paper gave an instance more time; big-M's are SCIP's."""
    whole: float | None = field(default=None, compare=False)
    """Seconds for all that big-M does, whatever the limits: SCIP has what writing leaves of them."""

    @property
    def key(self) -> str:
        """What tells it from all other runs."""
        cell = " ".join(f"{name}={value}" for name, value in self.cell)
        return f"{self.experiment} {cell} {self.method} seed={self.seed}"

    def __getitem__(self, name: str) -> Any:
        return dict(self.cell)[name]


def runs(
    experiment: str,
    cells: Iterable[Mapping[str, Any]],
    methods: Iterable[str],
    settings: BenchSettings,
    *,
    seeds: int | None = None,
    times: float = 1.0,
) -> list[Run]:
    """Every cell with every method and seed, or the first so many seeds."""
    chosen = [name for name in methods if settings.methods is None or name in settings.methods]
    wanted = [cell for cell in cells if settings.networks is None or cell.get("network") in settings.networks]
    return [
        Run(experiment, tuple(cell.items()), method, seed, times=times)
        for seed in settings.seeds[:seeds]
        for cell in wanted
        for method in chosen
    ]


def tried_first(
    experiment: str,
    cells: Sequence[Mapping[str, Any]],
    method: str,
    settings: BenchSettings,
    *,
    times: float = 1.0,
) -> list[Run]:
    """For big-M: the first seed, and a few more in those cells where it finds a point with the first.

    Where it finds none it uses all its time: a second seed would say the same for as many minutes.
    """
    first = {run.cell: run.key for run in runs(experiment, cells, (method,), settings, seeds=1)}
    planned = runs(experiment, cells, (method,), settings, seeds=FEW, times=times)
    return [run if run.seed == settings.seeds[0] else replace(run, given=first[run.cell]) for run in planned]

"""One run: an instance, a method, a seed. An experiment is a list of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SEEDS = (42, 123, 456, 789, 1024)
"""The paper's."""
TIME_LIMIT = 300.0
"""The paper's, in seconds, for every run."""
QUICK_SEEDS, QUICK_LIMIT = (42,), 2.0
"""To see that everything runs, not to measure."""

Record = dict[str, Any]
"""One line of the results file: the run's cell, seed and method, and what came out."""


@dataclass(frozen=True)
class Settings:
    """What the user asked for."""

    quick: bool = False
    data: Path | None = None
    seeds: tuple[int, ...] = SEEDS
    time_limit: float = TIME_LIMIT
    baseline_limit: float = TIME_LIMIT
    """Seconds for big-M."""
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

    @property
    def key(self) -> str:
        """What tells it from all other runs."""
        cell = " ".join(f"{name}={value}" for name, value in self.cell)
        return f"{self.experiment} {cell} {self.method} seed={self.seed}"

    def __getitem__(self, name: str) -> Any:
        return dict(self.cell)[name]


def runs(
    experiment: str, cells: Iterable[Mapping[str, Any]], methods: Iterable[str], settings: Settings
) -> list[Run]:
    """Every cell with every method and seed; runs that share a network follow each other."""
    chosen = [name for name in methods if settings.methods is None or name in settings.methods]
    wanted = [cell for cell in cells if settings.networks is None or cell.get("network") in settings.networks]
    return [
        Run(experiment, tuple(cell.items()), method, seed)
        for seed in settings.seeds
        for cell in wanted
        for method in chosen
    ]

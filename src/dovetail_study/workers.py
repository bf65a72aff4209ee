"""Runs made one after the other or several at a time, each as soon as it is due."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Any

import dovetail as dt
from dovetail.run.processes import Lost, pooled
from dovetail_study import EXPERIMENTS
from dovetail_study.contestants import AUTO, BASELINES, seconds
from dovetail_study.experiment import Experiment
from dovetail_study.run import INIT, BenchSettings, Record, Run

LONG = (*BASELINES, AUTO, "paper-scip", "paper-outputs", "paper-barrier")
"""Methods that tend to use all the time they have; the others are done in seconds."""

KILLED = "{run}: its process {end}; try --resume with a smaller --memory-limit, or fewer --jobs"
Outcome = Record | str
"""A row, or why there is none."""


def experiment_named(name: str) -> Experiment:
    """The experiment, imported now."""
    experiment: Experiment = EXPERIMENTS[name].load()
    return experiment


def execute(run: Run, settings: BenchSettings) -> Outcome:
    """One run, here and now: its row, or why it has none; then --resume tries it again."""
    try:
        return experiment_named(run.experiment).execute(run, settings)
    except dt.MissingDependencyError as missing:
        return str(missing)
    except dt.OptionError:
        raise
    except Exception as trouble:
        return f"{run.key}: {type(trouble).__name__}: {trouble}"


def results(
    planned: Sequence[Run],
    settings: BenchSettings,
    due: Callable[[Run], bool],
    jobs: int,
    begins: Callable[[Run], None],
) -> Iterator[Outcome]:
    """What came of each run as it ends; several at a time with `jobs`.

    `due` is asked again before each: a run may wait for the outcome of another.
    """
    waiting = _together(planned)
    if jobs == 1:
        while run := _next(waiting, due):
            begins(run)
            yield execute(run, settings)
        return
    if not settings.quick:  # the longest first: at the end no core is left alone with one of them
        waiting.sort(key=lambda run: -seconds(run, settings) if run.method in LONG else 0.0)

    def take() -> Run | None:
        run = _next(waiting, due)
        if run is not None:
            begins(run)
        return run

    def alone(run: Run) -> bool:
        """A baseline, unless it is a small one: the memory it is limited to is that of its process, where
        what an earlier run left behind would count."""
        return run.method in BASELINES and not settings.quick

    with closing(pooled(partial(execute, settings=settings), take, jobs, alone=alone)) as outcomes:
        for run, outcome in outcomes:
            yield KILLED.format(run=run.key, end=outcome) if isinstance(outcome, Lost) else outcome


def _together(planned: Sequence[Run]) -> list[Run]:
    """Runs that share a network follow each other, so that it is trained once."""
    networks: dict[tuple[Any, ...], int] = {}

    def place(run: Run) -> int:
        cell = dict(run.cell)
        network = (run.seed, cell.get("network"), cell.get("init", INIT))
        return networks.setdefault(network, len(networks))

    return sorted(planned, key=place)


def _next(waiting: list[Run], due: Callable[[Run], bool]) -> Run | None:
    """Take the first that may begin; None where none may, for now or for ever."""
    for place, run in enumerate(waiting):
        if due(run):
            return waiting.pop(place)
    return None

"""Runs made one after the other or several at a time, each as soon as it is due."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import torch

import dovetail as dt
from dovetail_study import EXPERIMENTS
from dovetail_study.contestants import AUTO, BASELINES, seconds
from dovetail_study.experiment import Experiment
from dovetail_study.run import INIT, THREADS, Record, Run, Settings

LONG = (*BASELINES, AUTO, "paper-scip", "paper-outputs", "paper-barrier")
"""Methods that tend to use all the time they have; the others are done in seconds."""

Outcome = Record | str
"""A row, or why there is none."""


def experiment_named(name: str) -> Experiment:
    """The experiment, imported now."""
    experiment: Experiment = EXPERIMENTS[name].load()
    return experiment


def execute(run: Run, settings: Settings) -> Outcome:
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
    settings: Settings,
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
    with _pool(jobs) as pool:
        working: set[Future[Outcome]] = set()
        try:
            while True:
                while len(working) < jobs and (run := _next(waiting, due)):
                    begins(run)
                    working.add(_submitted(run, settings, pool))
                if not working:
                    return
                done, working = wait(working, return_when=FIRST_COMPLETED)
                yield from [future.result() for future in done]
        except BaseException:
            for process in multiprocessing.active_children():
                process.terminate()
            raise


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


def _submitted(run: Run, settings: Settings, pool: ProcessPoolExecutor) -> Future[Outcome]:
    """Begin a run; a baseline, unless it is a small one, in a process of its own.

    The memory it is limited to is that of its process: what an earlier run left behind would count, and a
    process that is killed for its memory takes nobody else's run with it.
    """
    if run.method not in BASELINES or settings.quick:
        return pool.submit(execute, run, settings)
    own = _pool(1)
    future = own.submit(execute, run, settings)
    own.shutdown(wait=False)  # as soon as it is done
    outcome: Future[Outcome] = Future()
    future.add_done_callback(lambda ended: _pass_on(run, ended, outcome))
    return outcome


def _pass_on(run: Run, ended: Future[Outcome], outcome: Future[Outcome]) -> None:
    trouble = ended.exception()
    if isinstance(trouble, BrokenProcessPool):
        outcome.set_result(
            f"{run.key}: its process was killed, perhaps for want of memory; try --resume with a smaller "
            "--memory-limit, or fewer --jobs"
        )
    elif trouble is not None:
        outcome.set_exception(trouble)
    else:
        outcome.set_result(ended.result())


def _pool(workers: int) -> ProcessPoolExecutor:
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, mp_context=context, initializer=_quiet)


def _quiet() -> None:
    """A worker leaves Ctrl-C to the one who hired it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(THREADS)

"""`dovetail bench`: make the runs that are missing, write each down at once, then say what they show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column

import dovetail as dt
from dovetail_study import EXPERIMENTS
from dovetail_study.experiment import Experiment
from dovetail_study.figures import save
from dovetail_study.ledger import Ledger
from dovetail_study.page import APPENDIX, appendix, document
from dovetail_study.run import THREADS, BenchSettings, Record, Run
from dovetail_study.workers import experiment_named, results

BAR = 10
"""Columns of the bar: what else is on its line says more, and a narrow terminal has room for little."""


def chosen(names: Sequence[str]) -> list[Experiment]:
    """The experiments meant by these names; "all" means all."""
    unknown = [name for name in names if name not in EXPERIMENTS and name != "all"]
    if unknown:
        known = ", ".join((*EXPERIMENTS, "all"))
        raise dt.OptionError(f"experiment {unknown[0]!r} is not known; choose {known}.")
    wanted = EXPERIMENTS if "all" in names else [name for name in EXPERIMENTS if name in names]
    return [experiment_named(name) for name in wanted]


def bench(
    experiments: Sequence[Experiment],
    settings: BenchSettings,
    ledger: Ledger,
    console: Console,
    *,
    jobs: int = 1,
) -> bool:
    """Make what is missing, then report; False when Ctrl-C cut it short."""
    planned = [run for experiment in experiments for run in experiment.runs(settings)]
    done = sum(map(ledger.has, planned))
    more = sum(map(ledger.due, planned))
    console.print(f"{done + more} runs, {done} of them done; results in {ledger.path}")
    finished = True
    try:
        _make(planned, settings, ledger, console, jobs)
    except KeyboardInterrupt:
        finished = False
        console.print("\nInterrupted; what is done is kept. Go on with the same command and --resume.")
    report(experiments, ledger, console)
    return finished


def report(experiments: Sequence[Experiment], ledger: Ledger, console: Console) -> None:
    """Tables, verdicts and figures of the rows there are, and the page that holds them all."""
    folder = ledger.path.parent
    for experiment in experiments:
        rows = ledger.of(experiment.name)
        console.rule(experiment.title)
        if not rows:
            console.print("no runs yet")
            continue
        for table in experiment.tables(rows):
            table.show(console)
        for verdict in experiment.verdicts(rows):
            console.print(f"  {verdict}", highlight=False)
        _draw(experiment, rows, folder / "figures", console)
    every = [experiment_named(name) for name in EXPERIMENTS]
    there, page = [e for e in every if ledger.of(e.name)], folder / "results.md"
    page.write_text(document(there, ledger), encoding="utf-8")
    (folder / APPENDIX).write_text(appendix(there, ledger), encoding="utf-8")
    console.print(f"\nThe page {page} has the verdicts and figures, {APPENDIX} beside it all tables.")


def _draw(experiment: Experiment, rows: Sequence[Record], folder: Path, console: Console) -> None:
    drawing = experiment.draw(rows)
    if drawing is None:
        return
    try:
        save(drawing, folder, experiment.name)
    except dt.MissingDependencyError as missing:
        console.print(f"no figure: {missing}", highlight=False)


def require_runs(experiments: Sequence[Experiment], settings: BenchSettings) -> None:
    """Every method asked for is one of theirs, and there is something to run."""
    known = dict.fromkeys(method for experiment in experiments for method in experiment.methods)
    for method in settings.methods or ():
        if method not in known:
            raise dt.OptionError(f"--methods: {method!r} is not among {', '.join(known)}.")
    if not any(experiment.runs(settings) for experiment in experiments):
        raise dt.OptionError("--methods and --networks leave nothing to run; leave one of them out.")


def _make(planned: list[Run], settings: BenchSettings, ledger: Ledger, console: Console, jobs: int) -> None:
    columns = (
        TextColumn("{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True)),
        BarColumn(bar_width=BAR),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    torch.set_num_threads(THREADS)  # so that training does not depend on how many cores there are
    skipped: list[str] = []
    with Progress(*columns, console=console, expand=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=sum(map(ledger.due, planned)))

        def begins(run: Run) -> None:
            progress.update(task, description=run.key)
            if not console.is_terminal:
                console.print(f"  {run.key}")

        for made, result in enumerate(results(planned, settings, ledger.due, jobs, begins), start=1):
            if isinstance(result, str):
                skipped.append(result)
            else:
                ledger.add(result)
            left = sum(map(ledger.due, planned)) - len(skipped)  # a run may make others due
            progress.update(task, completed=made, total=made + left)
    for reason in sorted(set(skipped)):
        console.print(f"skipped: {reason}", highlight=False)

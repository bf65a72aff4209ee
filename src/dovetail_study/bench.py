"""`dovetail bench`: make the missing runs, write each one to the file at once, then report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

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
from dovetail.run.processes import WorkerLost, pooled
from dovetail_study import EXPERIMENTS
from dovetail_study.contestants import AUTO, BASELINES, seconds
from dovetail_study.experiment import (
    INIT,
    QUICK_LIMIT,
    QUICK_SEEDS,
    SEEDS,
    THREADS,
    TIME_LIMIT,
    BenchSettings,
    Experiment,
    Record,
    Run,
)
from dovetail_study.figures import save
from dovetail_study.ledger import NAME, Ledger, said
from dovetail_study.page import APPENDIX, appendix, document
from dovetail_study.problems import tree, water
from dovetail_study.problems.data import VARIABLE, find

LONG = (*BASELINES, AUTO, "paper-scip", "paper-outputs", "paper-barrier")
"""Methods that tend to use their whole time limit; the others end within seconds."""

KILLED = "{run}: its process {end}; try --resume with a smaller --memory-limit, or fewer --jobs"
Outcome = Record | str
"""A row, or why there is none."""


def experiment_named(name: str) -> Experiment:
    """The experiment, imported now."""
    experiment: Experiment = EXPERIMENTS[name].load()
    return experiment


def execute(run: Run, settings: BenchSettings) -> Outcome:
    """One run in this process: its row, or the reason for its failure; --resume repeats failed runs."""
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
    """The outcome of each run as it ends; several at a time with `jobs`.

    `due` is evaluated again before each run: a run may depend on the outcome of another.
    """
    waiting = _together(planned)
    if jobs == 1:
        while run := _next_run(waiting, due):
            begins(run)
            yield execute(run, settings)
        return
    if not settings.quick:  # the longest runs first: otherwise one core would work alone at the end
        waiting.sort(key=lambda run: -seconds(run, settings) if run.method in LONG else 0.0)

    def take() -> Run | None:
        run = _next_run(waiting, due)
        if run is not None:
            begins(run)
        return run

    def alone(run: Run) -> bool:
        """Whether a run needs a new process: a baseline that is not small, because its memory limit is that
        of the process, where memory of an earlier run would count."""
        return run.method in BASELINES and not settings.quick

    with closing(pooled(partial(execute, settings=settings), take, jobs, alone=alone)) as outcomes:
        for run, outcome in outcomes:
            yield KILLED.format(run=run.key, end=outcome) if isinstance(outcome, WorkerLost) else outcome


def _together(planned: Sequence[Run]) -> list[Run]:
    """Runs that share a network follow each other, so that it is trained once."""
    networks: dict[tuple[Any, ...], int] = {}

    def place(run: Run) -> int:
        cell = dict(run.cell)
        network = (run.seed, cell.get("network"), cell.get("init", INIT))
        return networks.setdefault(network, len(networks))

    return sorted(planned, key=place)


def _next_run(waiting: list[Run], due: Callable[[Run], bool]) -> Run | None:
    """Take the first run that may begin; None if there is none at present or at all."""
    for place, run in enumerate(waiting):
        if due(run):
            return waiting.pop(place)
    return None


BAR = 10
"""Width of the progress bar in columns: the other texts of its line matter more, and a narrow terminal has
little room."""


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
    """Make the missing runs, then report; False if Ctrl-C ended it early."""
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
    """Tables, verdicts and figures of the available rows, and the page that contains them."""
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
    """Check that the experiments have every requested method, and that there is a run to make."""
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
    torch.set_num_threads(THREADS)  # training must not depend on the number of cores
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


PLAIN_WIDTH = 79
"""Width of an output that is not a terminal: a file, a pipe."""
RESERVED = 0.15
"""Fraction of the machine's memory for the system, and for the growth of a run until it ends."""


def run(
    names: Sequence[str],
    *,
    quick: bool,
    data: Path | None,
    seeds: str | None,
    time_limit: float | None,
    baseline_limit: float | None,
    writing_limit: float | None,
    memory_limit: float | None,
    methods: str | None,
    networks: str | None,
    out: Path,
    resume: bool,
    mix_commits: bool,
    jobs: int,
    beside: int,
    device: str | None,
) -> bool:
    """Check the request, then run it; False if it ended early."""
    experiments = chosen(names)
    ledger = Ledger.open(out, shared=jobs + beside) if resume else None
    old = ledger.header["settings"] if ledger is not None else {}
    quick = quick or bool(old.get("quick"))
    limit = _first_given(time_limit, old.get("time_limit"), QUICK_LIMIT if quick else TIME_LIMIT)
    solving = _first_given(baseline_limit, old.get("baseline_limit"), limit)
    settings = BenchSettings(
        quick=quick,
        data=_folder(data, quick, [tree.FILE] if "e5" in (e.name for e in experiments) else []),
        seeds=_seeds(seeds) if seeds is not None else (QUICK_SEEDS if quick else SEEDS),
        time_limit=_positive("--time-limit", limit),
        baseline_limit=_positive("--baseline-limit", solving),
        writing_limit=_positive(
            "--writing-limit", _first_given(writing_limit, old.get("writing_limit"), solving)
        ),
        memory_limit=_memory(memory_limit, jobs),
        methods=_names(methods),
        networks=_names(networks),
        device=device,
    )
    require_runs(experiments, settings)
    if ledger is None:
        ledger = Ledger.create(out, settings, jobs + beside)
    _require_same(ledger, settings)
    if not mix_commits and any(ledger.due(run) for e in experiments for run in e.runs(settings)):
        ledger.require_one_commit()
    return bench(experiments, settings, ledger, _console(), jobs=jobs)


def collect(names: Sequence[str], others: Sequence[Path], *, out: Path, mix_commits: bool) -> None:
    """Take over the rows of other results files into the one in `out`, all of a file or none."""
    experiments = [experiment.name for experiment in chosen(names)]
    ledger = Ledger.open(out)
    for other in others:
        new = ledger.merge(other / NAME if other.is_dir() else other, experiments, mix_commits=mix_commits)
        _console().print(f"{new} rows taken over from {other}")


def tell(names: Sequence[str], *, out: Path) -> None:
    """Report the contents of the file without runs."""
    report(chosen(names), Ledger.open(out, any_version=True), _console())


def _console() -> Console:
    """As wide as the terminal; names and reasons are printed in full."""
    console = Console(markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = min(console.width, PLAIN_WIDTH)
    return console


def _first_given(*values: float | None) -> float:
    """The first value that was given."""
    return next(value for value in values if value is not None)


def _folder(data: Path | None, quick: bool, more: list[str]) -> Path | None:
    """The folder of the real data; a quick run makes look-alike data unless told otherwise."""
    folder = data if data is not None else None if quick else os.environ.get(VARIABLE)
    if not folder:
        return None
    for name in (water.FILE, *more):
        find(name, folder)  # raises an error now rather than after an hour
    return Path(folder)


def _names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(name.strip() for name in text.split(","))


def _seeds(text: str) -> tuple[int, ...]:
    try:
        seeds = tuple(int(part) for part in text.split(","))
    except ValueError:
        seeds = ()
    if not seeds or min(seeds) < 0:
        raise dt.OptionError(f"--seeds is {text!r}; give whole numbers with commas between, such as 42,123.")
    return tuple(dict.fromkeys(seeds))


def _positive(option: str, amount: float, unit: str = "seconds") -> float:
    if not 0.0 < amount < float("inf"):
        raise dt.OptionError(f"{option} is {amount}; give a number of {unit} above 0.")
    return float(amount)


def _memory(limit: float | None, jobs: int) -> float | None:
    """GB for a run of big-M: the given limit, otherwise an equal share of the machine's memory, if known."""
    if limit is not None:
        return _positive("--memory-limit", limit, "GB")
    try:
        whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
    except (AttributeError, ValueError, OSError):
        return None
    return (1.0 - RESERVED) * whole / jobs


def _require_same(ledger: Ledger, settings: BenchSettings) -> None:
    """Rows made under other settings may not be mixed."""
    for name, value in said(settings).items():
        was = ledger.header["settings"][name]
        if was != value:
            raise dt.OptionError(
                f"{ledger.path} was made with {name.replace('_', ' ')} {was}, not {value}; give the same, "
                "or another --out."
            )

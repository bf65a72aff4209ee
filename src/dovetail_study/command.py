"""The options of `dovetail bench` as the user gave them, and those of the file that is gone on with."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

import dovetail as dt
from dovetail_study.bench import bench, chosen, report, require_runs
from dovetail_study.ledger import NAME, Ledger, said
from dovetail_study.problems import tree, water
from dovetail_study.problems.data import VARIABLE, find
from dovetail_study.run import QUICK_LIMIT, QUICK_SEEDS, SEEDS, TIME_LIMIT, BenchSettings

PLAIN_WIDTH = 79
"""Columns of what is no terminal: a file, a pipe."""
RESERVED = 0.15
"""Of the machine's memory: for the system, and for what a run still takes until it has ended."""


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
    """Check what was asked for, then run it; False when it was cut short."""
    experiments = chosen(names)
    ledger = Ledger.open(out, shared=jobs + beside) if resume else None
    old = ledger.header["settings"] if ledger is not None else {}
    quick = quick or bool(old.get("quick"))
    limit = _first(time_limit, old.get("time_limit"), QUICK_LIMIT if quick else TIME_LIMIT)
    solving = _first(baseline_limit, old.get("baseline_limit"), limit)
    settings = BenchSettings(
        quick=quick,
        data=_folder(data, quick, [tree.FILE] if "e5" in (e.name for e in experiments) else []),
        seeds=_seeds(seeds) if seeds is not None else (QUICK_SEEDS if quick else SEEDS),
        time_limit=_positive("--time-limit", limit),
        baseline_limit=_positive("--baseline-limit", solving),
        writing_limit=_positive("--writing-limit", _first(writing_limit, old.get("writing_limit"), solving)),
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
    """Report what is in the file; nothing is run."""
    report(chosen(names), Ledger.open(out, any_version=True), _console())


def _console() -> Console:
    """As wide as the terminal; names and reasons are printed as they are."""
    console = Console(markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = min(console.width, PLAIN_WIDTH)
    return console


def _first(*values: float | None) -> float:
    """The first that was given."""
    return next(value for value in values if value is not None)


def _folder(data: Path | None, quick: bool, more: list[str]) -> Path | None:
    """Where the real data is; a quick run makes its own unless it is told otherwise."""
    folder = data if data is not None else None if quick else os.environ.get(VARIABLE)
    if not folder:
        return None
    for name in (water.FILE, *more):
        find(name, folder)  # complains now, not after an hour
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
    """GB for a run of big-M: what was given, else an equal share of the machine, if it says what it has."""
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

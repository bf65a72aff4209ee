"""The page of results: every number on it comes from the results file it lies beside."""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.experiments.experiment import Experiment
from dovetail.experiments.ledger import NAME, Ledger
from dovetail.experiments.run import SEEDS, TIME_LIMIT, Settings
from dovetail.experiments.statistics import distinct
from dovetail.experiments.table import markdown_row
from dovetail.experiments.verdict import Verdict, Word


def document(experiments: Sequence[Experiment], ledger: Ledger) -> str:
    """The whole page as Markdown."""
    parts = [_introduction(ledger), _summary(experiments, ledger)]
    parts += [_section(experiment, ledger) for experiment in experiments]
    return "\n".join(parts)


def _introduction(ledger: Ledger) -> str:
    settings, machine = ledger.header["settings"], ledger.header["machine"]
    seeds = ", ".join(str(seed) for seed in sorted(distinct(ledger.records, "seed")))
    devices = ", ".join(distinct(ledger.records, "device"))
    kind = "a quick run on small instances" if settings["quick"] else "a full run"
    cuts = []
    if settings["baseline_limit"] < TIME_LIMIT:
        cuts.append(f"big-M had {settings['baseline_limit']:g} s instead of the paper's {TIME_LIMIT:g} s")
    if settings["time_limit"] < TIME_LIMIT:
        cuts.append(f"every other run had {settings['time_limit']:g} s")
    missing = len(SEEDS) - len(distinct(ledger.records, "seed"))
    if missing > 0:
        cuts.append(f"{missing} of the paper's {len(SEEDS)} seeds were left out")
    said = f" Cut against the paper: {'; '.join(cuts)}." if cuts else ""
    if ledger.header.get("jobs", 1) > 1:
        said += f" {ledger.header['jobs']} runs at a time, one core each: times are those of a busy machine."
    said += _elsewhere(ledger)
    libraries = ", ".join(f"{name} {machine[name]}" for name in ("python", "torch", "highspy", "piqp"))
    return (
        f"# The paper's claims, measured\n\nWritten by `dovetail bench` from [{NAME}]({NAME}), which "
        f"holds one line per run; nothing on this page is typed by hand. It shows {kind}, "
        f"{len(ledger.records)} runs, on {settings['data']} data, seeds {seeds}, devices {devices}; "
        f"{machine['cores']} cores ({machine['processor']}), {libraries}, dovetail "
        f"{ledger.header['dovetail']}.{said}\n\nTo trace a number: the lines whose fields are those of "
        "its row in the table (experiment, network, n, method) are the runs it is the mean of.\n"
    )


def _elsewhere(ledger: Ledger) -> str:
    """Which runs were made on another machine or device than the first line names."""
    machine = ledger.header["machine"]
    here = ("cpu", f"{machine['processor']}, {machine['cores']} cores")
    others: dict[str, list[str]] = {}
    for record in ledger.records:
        place = (record["device"], record.get("machine", here[1]))
        if place != here:
            label = f"{record['experiment']} {record.get('network', '')}".strip()
            others.setdefault(", ".join(place), []).append(label)
    parts = [f"{', '.join(dict.fromkeys(labels))} ({place})" for place, labels in others.items()]
    return f" Made elsewhere: {'; '.join(parts)}." if parts else ""


def _summary(experiments: Sequence[Experiment], ledger: Ledger) -> str:
    verdicts = [verdict for e in experiments for verdict in e.verdicts(ledger.of(e.name))]
    counts = ", ".join(f"{sum(verdict.word is word for verdict in verdicts)} {word.value}" for word in Word)
    header = ("claim", "paper", "here", "verdict", "it holds if")
    return "\n".join(
        [
            "## Every claim in one table",
            "",
            f"{len(verdicts)} claims: {counts}.",
            "",
            markdown_row(header),
            markdown_row(["---"] * len(header)),
            *[_row(verdict) for verdict in verdicts],
            "",
        ]
    )


def _row(verdict: Verdict) -> str:
    cells = (verdict.claim, verdict.paper, verdict.ours, f"**{verdict.word.value}**", verdict.rule)
    return markdown_row([cell.replace("|", "\\|") for cell in cells])


def _volume(experiment: Experiment, ledger: Ledger) -> str:
    """How much of the experiment is in the file."""
    rows = ledger.of(experiment.name)
    seeds = tuple(sorted(distinct(rows, "seed")))
    planned = experiment.runs(Settings(quick=ledger.header["settings"]["quick"], seeds=seeds))
    missing = [run for run in planned if ledger.due(run)]
    said = f"{len(rows)} runs, seeds {', '.join(map(str, seeds))}."
    return f"{said} {len(missing)} more that are planned with these are missing." if missing else said


def _section(experiment: Experiment, ledger: Ledger) -> str:
    rows = ledger.of(experiment.name)
    parts = [f"## {experiment.title}", "", _volume(experiment, ledger), ""]
    if experiment.draw(rows) is not None:
        parts += [f"![{experiment.title}](figures/{experiment.name}.png)", ""]
    reading = experiment.reading(rows)
    if reading:
        parts += [reading, ""]
    parts += [table.markdown(level=3) for table in experiment.tables(rows)]
    return "\n".join(parts)

"""The appendix of the page of results: rules, provenance, and every cell, computed from the results file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import dovetail as dt
from dovetail_study.best_known import DIGITS as SPREAD_DIGITS
from dovetail_study.best_known import divided
from dovetail_study.claims.adam import converging
from dovetail_study.contestants import AUTO, BASELINES, LEGEND
from dovetail_study.experiment import Experiment
from dovetail_study.ledger import NAME, Ledger
from dovetail_study.origin import caption, commits, mixture, order, places, recipe
from dovetail_study.run import SEEDS, TIME_LIMIT, BenchSettings, Record, Run
from dovetail_study.statistics import distinct, known, present, where
from dovetail_study.table import ResultTable, markdown_row
from dovetail_study.verdict import Verdict, Word

LIBRARIES = ("python", "torch", "highspy", "piqp", "pyscipopt", "pyscipopt-ml")

BUDGETS = (
    'Budgets on water: the paper\'s experiments say "per-feature budgets of ±2.0", its appendix that they '
    "limit the sum over all samples; *total* and *per sample* are the two readings."
)
READINGS = (
    "Claims about water are judged in both readings of the budgets; the headline and the sensitivity were "
    "run with totals only."
)
APART = "Not counted above: a statement of ours, and a claim that cannot fail."
TRACE = (
    "To trace a number: a table's caption says how many lines it is made of; those of one of its rows have "
    "the fields that the row names (experiment, network, n, method and so on). A verdict names its lines in "
    "the last column, by the fields and values that choose them; a field that is not named may have any "
    "value. Where it says a of b lines, such as 36 of 38, the fields choose b, and of these those count "
    "whose instance has a row of both methods that are compared. *Best known* is the best verified point of "
    "any method on the same experiment, network, n, budgets, initialisation, grid and seed, and on a network "
    f"that training came out with alike (the field `spread`, to {SPREAD_DIGITS} digits after the point): "
    "another kind of machine may make another network of the same seed."
)


def appendix(experiments: Sequence[Experiment], ledger: Ledger) -> str:
    """The whole appendix as Markdown."""
    parts = [_introduction(ledger), _methods(ledger), _summary(experiments, ledger)]
    parts += [_section(experiment, ledger) for experiment in experiments]
    return "\n".join(parts)


def _introduction(ledger: Ledger) -> str:
    settings, machine = ledger.header["settings"], ledger.header["machine"]
    seeds = ", ".join(str(seed) for seed in sorted(distinct(ledger.records, "seed")))
    kind = "a quick run on small instances" if settings["quick"] else "a full run"
    libraries = ", ".join(f"{name} {machine[name]}" for name in LIBRARIES if name in machine)
    return "\n".join(
        [
            "# The paper's claims, measured: the appendix",
            "",
            "Rules, provenance and every cell behind [the page of results](results.md). Written by "
            f"`dovetail bench` from [{NAME}]({NAME}), which holds one line per run; nothing on "
            f"this page is typed by hand. It shows {kind}, {len(ledger.records)} runs, on "
            f"{settings['data']} data, seeds {seeds}; dovetail {ledger.header['dovetail']}, {libraries} (of "
            f"the first file, where several were merged).{_cuts(ledger)}",
            "",
            *_made(ledger.records),
            "",
            _limits(ledger) + BUDGETS,
            "",
            TRACE + _divided(ledger),
            "",
        ]
    )


def _divided(ledger: Ledger) -> str:
    """Instances whose runs are not all compared."""
    count = divided(ledger.records)
    return f" So it is with {count} of the instances here: runs on one network are compared." if count else ""


def _cuts(ledger: Ledger) -> str:
    """What was cut against the paper's settings."""
    settings, cuts = ledger.header["settings"], []
    if settings["baseline_limit"] < TIME_LIMIT:
        cuts.append(f"SCIP had {settings['baseline_limit']:g} s for big-M instead of {TIME_LIMIT:g} s")
    if settings["time_limit"] < TIME_LIMIT:
        cuts.append(f"every other run had {settings['time_limit']:g} s")
    left_out = [seed for seed in SEEDS if seed not in distinct(ledger.records, "seed")]
    if left_out:
        cuts.append(f"{len(left_out)} of the paper's {len(SEEDS)} seeds were left out")
    return f" Cut against the paper: {'; '.join(cuts)}." if cuts else ""


def _limits(ledger: Ledger) -> str:
    """What big-M was given, and where it was given more; nothing of a file that does not say."""
    settings = ledger.header["settings"]
    baselines = [row for row in ledger.records if row["method"] in BASELINES and row.get("limit")]
    if not baselines:
        return ""
    usual = settings["writing_limit"] + settings["baseline_limit"]
    more: dict[float, list[str]] = {}
    for row in baselines:
        if row["limit"] > usual:
            more.setdefault(row["limit"], []).append(_place(row))
    longer = "; ".join(f"{s:g} s in all for {', '.join(dict.fromkeys(more[s]))}" for s in sorted(more))
    more_said = f" ({longer})" if longer else ""
    return (
        f"big-M had {settings['writing_limit']:g} s to be written and {settings['baseline_limit']:g} s of "
        f"SCIP{more_said}. {_memory(baselines)}"
    )


def _memory(baselines: Sequence[Record]) -> str:
    """The memory limit of big-M, and which runs a lower one has ended."""
    most = max(known(baselines, "memory_limit"), default=None)
    if most is None:
        return "Its memory had no limit. "
    lower = [row for row in baselines if (row.get("memory_limit") or most) < most]
    ended = [f"{_place(row)} at {row['memory_limit']:g} GB" for row in lower if row.get("end") == "memory"]
    fewer = len(lower) - len(ended)
    said = f"Its memory limit was {most:g} GB"
    if fewer:
        runs = "1 run" if fewer == 1 else f"{fewer} runs"
        said += f"; {runs} had a lower limit and never reached it, so it decided nothing"
    if ended:
        said += f"; a lower limit ended {', '.join(ended)}"
    return f"{said}. "


def _place(row: Record) -> str:
    named = [row["experiment"], row["network"], f"n={row['n']}" if row.get("n") else ""]
    return " ".join(filter(None, named))


def _made(records: Sequence[Record]) -> list[str]:
    """Commits, machines, threads and how many runs shared a machine."""
    return [
        "Runs were made by:",
        "",
        *[f"- {place}: {count} runs" for place, count in places(records).items()],
    ]


def _methods(ledger: Ledger) -> str:
    there = present(LEGEND, ledger.records)
    return "\n".join(
        ["## The methods", "", *[f"- *{name}*: {LEGEND[name]}{_given(name, ledger)}." for name in there], ""]
    )


def _given(name: str, ledger: Ledger) -> str:
    """The seconds of the reference, beside those of whom it is held against."""
    limits = sorted(set(known(where(ledger.records, method=name), "limit"))) if name == AUTO else []
    theirs = ledger.header["settings"]["time_limit"]
    return f"; it had {', '.join(f'{s:g}' for s in limits)} s, the contestants {theirs:g} s" if limits else ""


def _summary(experiments: Sequence[Experiment], ledger: Ledger) -> str:
    judged = [(verdict, ledger.of(e.name)) for e in experiments for verdict in e.verdicts(ledger.of(e.name))]
    claims = [(verdict, rows) for verdict, rows in judged if verdict.counted]
    others = [(verdict, rows) for verdict, rows in judged if not verdict.counted]
    counts = ", ".join(f"{sum(verdict.word is word for verdict, _ in claims)} {word.value}" for word in Word)
    said = f"{len(claims)} verdicts: {counts}. {READINGS} {converging(ledger.records)}".rstrip()
    parts = ["## Every claim in one table", "", said, "", *_judged(claims), ""]
    if others:
        parts += ["## Shown apart", "", APART, "", *_judged(others), ""]
    return "\n".join(parts)


def _judged(verdicts: Sequence[tuple[Verdict, Sequence[Record]]]) -> list[str]:
    header = ("claim", "paper", "here", "verdict", "it holds if", "lines")
    return [
        markdown_row(header),
        markdown_row(["---"] * len(header)),
        *[_row(verdict, rows) for verdict, rows in verdicts],
    ]


def _row(verdict: Verdict, every: Sequence[Record]) -> str:
    lines = recipe(verdict.rows, every)
    ours = verdict.ours + mixture(verdict.rows)
    cells = (verdict.named, verdict.paper, ours, f"**{verdict.word.value}**", verdict.rule, lines)
    return markdown_row([cell.replace("|", "\\|") for cell in cells])


def _volume(experiment: Experiment, ledger: Ledger) -> str:
    """How much of the experiment is in the file."""
    rows = ledger.of(experiment.name)
    seeds = tuple(sorted(distinct(rows, "seed")))
    own = tuple(seed for seed in SEEDS if seed in seeds)  # others are extra: nothing more is planned for them
    planned = experiment.runs(BenchSettings(quick=ledger.header["settings"]["quick"], seeds=own or seeds))
    missing = [run for run in planned if ledger.due(run)]
    said = f"{len(rows)} runs, seeds {', '.join(map(str, seeds))}."
    return f"{said} {_not_run(missing)}" if missing else said


def _not_run(missing: Sequence[Run]) -> str:
    """What is planned and not there, method by method: a missing run is not a failed one."""
    parts = []
    for method in dict.fromkeys(run.method for run in missing):
        mine = [run for run in missing if run.method == method]
        cells = [dict(run.cell) for run in mine]
        named = [
            f"{name} {_listed(cell.get(name) for cell in cells)}" for name in ("network", "n", "budgets")
        ]
        where_to = [part for part in named if not part.endswith(" ")]
        parts.append(
            f"{method} {len(mine)} ({'; '.join([*where_to, f'seeds {_listed(run.seed for run in mine)}'])})"
        )
    return (
        f"Planned with these and not run, for want of machine time alone: {len(missing)} more, "
        f"{'; '.join(parts)}. They count neither for nor against a claim."
    )


def _listed(values: Iterable[object]) -> str:
    """The different values of a field, without the runs that have none."""
    return ", ".join(map(str, sorted({value for value in values if value is not None}, key=order)))


def _section(experiment: Experiment, ledger: Ledger) -> str:
    rows = ledger.of(experiment.name)
    parts = [f"## {experiment.title}", "", _volume(experiment, ledger), ""]
    if experiment.draw(rows) is not None:
        parts += [f"![{experiment.title}](figures/{experiment.name}.png)", ""]
    reading = experiment.reading(rows)
    if reading:
        parts += [reading, ""]
    parts += [_printed(table, rows) for table in experiment.tables(rows)]
    return "\n".join(parts)


def _printed(table: ResultTable, rows: Sequence[Record]) -> str:
    """A table with where it comes from; one that does not say which lines it is made of must not be mixed."""
    if not table.records and len(commits(rows)) > 1:
        raise dt.OptionError(
            f"the table {table.title!r} does not say which lines it is made of, and these come from several "
            f"commits ({', '.join(commits(rows))}): give it `records`, or make all runs with one commit."
        )
    return table.markdown(level=3, caption=caption(table.records))

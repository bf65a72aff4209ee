"""The page of results and its appendix, every number computed from the results file beside them.

The page lists the paper's claims, the measurements and the verdicts; the appendix has rules, provenance and
every cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import dovetail as dt
from dovetail_study.claims import POINTS, converging
from dovetail_study.contestants import AUTO, BASELINES, LEGEND
from dovetail_study.experiment import (
    SEEDS,
    TIME_LIMIT,
    BenchSettings,
    Experiment,
    Record,
    ResultTable,
    Run,
    Verdict,
    Word,
    markdown_table,
)
from dovetail_study.ledger import NAME, Ledger
from dovetail_study.origin import caption, commits, mixture, order, places, recipe
from dovetail_study.paper import BUDGETS, ITERATIONS
from dovetail_study.statistics import DIGITS as SPREAD_DIGITS
from dovetail_study.statistics import (
    Reachable,
    agreed,
    distinct,
    divided,
    known,
    mean,
    present,
    proved,
    where,
)

APPENDIX = "results_appendix.md"
READ = "budgets per sample"
"""How the page reads the budgets: the paper's experiments have "per-feature budgets of ±2.0"."""
TOP = (
    "E1 quality: DD beside the best known",
    "E1 speed-up of DD over big-M",
    "E2 success from 16x128 on",
    "E2 64x512: total time",
    "E3 DD keeps it",
    "E3 removing the dual update alone costs quality",
    "E4 convergence of FC, Conv1d, residual, LSTM",
    "E5 speed-up of projected gradient over SCIP",
    "Theorem 1: every limit is a KKT point (u = x)",
    "Convergence depends on rho and step size",
)
"""The ten lines on top: each experiment's first claims."""


def document(experiments: Sequence[Experiment], ledger: Ledger) -> str:
    """The page as Markdown."""
    judged = [verdict for each in experiments for verdict in each.verdicts(ledger.of(each.name))]
    claims = by_claim([verdict for verdict in judged if verdict.counted])
    return "\n".join(
        [
            *_introduction(ledger, claims),
            *_top_verdicts(claims),
            *_figures(experiments, ledger),
            *_claims(claims),
            *_methods(ledger),
        ]
    )


def by_claim(verdicts: Sequence[Verdict]) -> list[list[Verdict]]:
    """The verdicts of each claim, that of the page's reading first."""
    found: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        found.setdefault(verdict.claim, []).append(verdict)
    return [sorted(each, key=lambda verdict: verdict.reading != READ) for each in found.values()]


def word(claim: Sequence[Verdict]) -> str:
    """The verdict in the page's reading; another reading is named where its verdict is another one."""
    first, *others = claim
    own = f" ({first.reading})" if first.reading not in ("", READ) else ""
    differ = [other for other in others if other.word is not first.word]
    aside = "".join(f" ({other.word.value} with {other.reading})" for other in differ)
    return f"**{first.word.value}**{own}{aside}"


def _introduction(ledger: Ledger, claims: Sequence[Sequence[Verdict]]) -> list[str]:
    settings = ledger.header["settings"]
    own = sorted(set(distinct(ledger.records, "seed")) & set(SEEDS))
    others = sorted(set(distinct(ledger.records, "seed")) - set(SEEDS))
    seeds = f"seeds {', '.join(map(str, own))}" + (
        f", to choose a reading {', '.join(map(str, others))}" if others else ""
    )
    counts = ", ".join(f"{sum(claim[0].word is each for claim in claims)} {each.value}" for each in Word)
    return [
        "# The paper's claims, measured",
        "",
        f"{len(claims)} claims: {counts}. {len(ledger.records):,} runs, {_drawn(ledger)}{settings['data']} "
        f"data; {seeds}; {_kind(ledger)}; one line each in [{NAME}]({NAME}). `dovetail bench` writes this "
        f"page, and its [appendix]({APPENDIX}) with the rules, what each verdict rests on, and every cell.",
        "",
        *_first_sentence(ledger),
    ]


def _drawn(ledger: Ledger) -> str:
    """The number of runs on drawn problems, which need no data."""
    drawn = sum(row.get("family") is not None for row in ledger.records)
    return f"{drawn} of them on drawn problems, the others on " if drawn else "on "


def _first_sentence(ledger: Ledger) -> list[str]:
    """What the paper's loop finds of the best known, with both kinds of budgets: a sentence to begin with."""
    rows = where(ledger.of("e1"), method="paper")
    reachable = Reachable(ledger.of("e1"))
    shares = {budgets: mean(reachable.shares(where(rows, budgets=budgets))) for budgets in BUDGETS}
    if not all(map(math.isfinite, shares.values())):
        return []
    per_sample, total = (f"{100 * shares[budgets]:.0f} %" for budgets in reversed(BUDGETS))
    return [
        f"In short (E1): the paper's loop finds {per_sample} of the best known potable samples where every "
        f"sample has budgets of its own, and {total} where all samples share them. Of its {len(rows)} runs "
        f"{sum(map(agreed, rows))} ended because the blocks agreed, {sum(map(proved, rows))} because nothing "
        f"better exists, and the others after {ITERATIONS} iterations.",
        "",
    ]


def _top_verdicts(claims: Sequence[Sequence[Verdict]]) -> list[str]:
    known = {claim[0].claim: claim for claim in claims}
    lines = [known[name] for name in TOP if name in known]
    if not lines:
        return []
    return ["## In ten lines", "", *_table(lines), ""]


def _figures(experiments: Sequence[Experiment], ledger: Ledger) -> list[str]:
    parts = []
    for each in experiments:
        if each.draw(ledger.of(each.name)) is not None:
            parts += [f"![{each.title}](figures/{each.name}.png)", ""]
    return ["## The figures", "", *parts] if parts else []


def _claims(claims: Sequence[Sequence[Verdict]]) -> list[str]:
    return [
        "## Every claim",
        "",
        'The paper has two kinds of budgets on water: its experiments "per-feature budgets of ±2.0", its '
        "appendix limits on the sum over all samples. Where a claim was run with both, the verdict is that "
        f"of {READ}, and that of the other kind is named where it differs. A claim that was run with totals "
        "only says so.",
        "",
        *_table(claims),
        "",
    ]


def _table(claims: Sequence[Sequence[Verdict]]) -> list[str]:
    rows = [(word(claim), claim[0].claim, claim[0].paper, claim[0].outcome) for claim in claims]
    return markdown_table(("verdict", "claim", "the paper", "here"), rows)


def _kind(ledger: Ledger) -> str:
    return "a quick run on small instances" if ledger.header["settings"]["quick"] else "a full run"


def _methods(ledger: Ledger, given: Callable[[str, Ledger], str] = lambda name, ledger: "") -> list[str]:
    """The methods that were run; `given` adds a text to each."""
    there = present(LEGEND, ledger.records)
    return [
        "## The methods",
        "",
        *(f"- *{name}*: {LEGEND[name]}{given(name, ledger)}." for name in there),
        "",
    ]


LIBRARIES = ("python", "torch", "highspy", "piqp", "pyscipopt", "pyscipopt-ml")

TWO_BUDGETS = (
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
    parts = [_provenance(ledger), *_methods(ledger, _reference_seconds), _summary(experiments, ledger)]
    parts += [_section(experiment, ledger) for experiment in experiments]
    return "\n".join(parts)


def _provenance(ledger: Ledger) -> str:
    settings, machine = ledger.header["settings"], ledger.header["machine"]
    seeds = ", ".join(str(seed) for seed in sorted(distinct(ledger.records, "seed")))
    libraries = ", ".join(f"{name} {machine[name]}" for name in LIBRARIES if name in machine)
    return "\n".join(
        [
            "# The paper's claims, measured: the appendix",
            "",
            "Rules, provenance and every cell behind [the page of results](results.md). Written by "
            f"`dovetail bench` from [{NAME}]({NAME}), which holds one line per run; nothing on "
            f"this page is typed by hand. It shows {_kind(ledger)}, {len(ledger.records)} runs, on "
            f"{settings['data']} data, seeds {seeds}; dovetail {ledger.header['dovetail']}, {libraries} (of "
            f"the first file, where several were merged).{_cuts(ledger)}",
            "",
            "Runs were made by:",
            "",
            *[f"- {place}: {count} runs" for place, count in places(ledger.records).items()],
            "",
            _limits(ledger) + TWO_BUDGETS,
            "",
            TRACE + _divided_instances(ledger),
            "",
        ]
    )


def _divided_instances(ledger: Ledger) -> str:
    """Instances whose runs are not all compared."""
    count = divided(ledger.records)
    return f" So it is with {count} of the instances here: runs on one network are compared." if count else ""


def _cuts(ledger: Ledger) -> str:
    """The reductions compared with the paper's settings."""
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
    """The limits of big-M, and where they were higher; empty if the file does not state them."""
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
    """The memory limit of big-M, and the runs that a lower limit ended."""
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


def _reference_seconds(name: str, ledger: Ledger) -> str:
    """The seconds of the reference, beside those of the methods compared with it."""
    limits = sorted(set(known(where(ledger.records, method=name), "limit"))) if name == AUTO else []
    theirs = ledger.header["settings"]["time_limit"]
    return f"; it had {', '.join(f'{s:g}' for s in limits)} s, the contestants {theirs:g} s" if limits else ""


def _summary(experiments: Sequence[Experiment], ledger: Ledger) -> str:
    judged = [(verdict, ledger.of(e.name)) for e in experiments for verdict in e.verdicts(ledger.of(e.name))]
    claims = [(verdict, rows) for verdict, rows in judged if verdict.counted]
    others = [(verdict, rows) for verdict, rows in judged if not verdict.counted]
    counts = ", ".join(f"{sum(verdict.word is word for verdict, _ in claims)} {word.value}" for word in Word)
    said = f"{len(claims)} verdicts: {counts}. {READINGS} {POINTS} {converging(ledger.records)}".rstrip()
    parts = ["## Every claim in one table", "", said, "", *_verdict_lines(claims), ""]
    if others:
        parts += ["## Shown apart", "", APART, "", *_verdict_lines(others), ""]
    return "\n".join(parts)


def _verdict_lines(verdicts: Sequence[tuple[Verdict, Sequence[Record]]]) -> list[str]:
    return markdown_table(
        ("claim", "paper", "here", "verdict", "it holds if", "lines"),
        [
            (
                verdict.named,
                verdict.paper,
                verdict.ours + mixture(verdict.rows),
                f"**{verdict.word.value}**",
                verdict.rule,
                recipe(verdict.rows, every),
            )
            for verdict, every in verdicts
        ],
    )


def _volume(experiment: Experiment, ledger: Ledger) -> str:
    """The part of the experiment that is in the file, in words."""
    rows = ledger.of(experiment.name)
    seeds = tuple(sorted(distinct(rows, "seed")))
    own = tuple(seed for seed in SEEDS if seed in seeds)  # others are additional runs
    planned = experiment.runs(BenchSettings(quick=ledger.header["settings"]["quick"], seeds=own or seeds))
    missing = [run for run in planned if ledger.due(run)]
    said = f"{len(rows)} runs, seeds {', '.join(map(str, seeds))}."
    return f"{said} {_not_run(missing)}" if missing else said


def _not_run(missing: Sequence[Run]) -> str:
    """The planned but missing runs, method by method: a missing run is not a failed one."""
    parts = []
    for method in dict.fromkeys(run.method for run in missing):
        mine = [run for run in missing if run.method == method]
        cells = [dict(run.cell) for run in mine]
        named = [
            f"{name} {_values(cell.get(name) for cell in cells)}" for name in ("network", "n", "budgets")
        ]
        where_to = [part for part in named if not part.endswith(" ")]
        parts.append(
            f"{method} {len(mine)} ({'; '.join([*where_to, f'seeds {_values(run.seed for run in mine)}'])})"
        )
    return (
        f"Planned with these and not run, for want of machine time alone: {len(missing)} more, "
        f"{'; '.join(parts)}. They count neither for nor against a claim."
    )


def _values(values: Iterable[object]) -> str:
    """The different values of a field, without the runs that have none."""
    return ", ".join(map(str, sorted({value for value in values if value is not None}, key=order)))


def _section(experiment: Experiment, ledger: Ledger) -> str:
    rows = ledger.of(experiment.name)
    parts = [f"## {experiment.title}", "", _volume(experiment, ledger), ""]
    if experiment.draw(rows) is not None:
        parts += [f"![{experiment.title}](figures/{experiment.name}.png)", ""]
    parts += [_table_with_origin(table, rows) for table in experiment.tables(rows)]
    return "\n".join(parts)


def _table_with_origin(table: ResultTable, rows: Sequence[Record]) -> str:
    """A table with its origin; tables without known lines must not be merged."""
    if not table.records and len(commits(rows)) > 1:
        raise dt.OptionError(
            f"the table {table.title!r} does not say which lines it is made of, and these come from several "
            f"commits ({', '.join(commits(rows))}): give it `records`, or make all runs with one commit."
        )
    return table.markdown(level=3, caption=caption(table.records))

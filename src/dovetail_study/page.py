"""The page of results: what the paper says, what was measured, and the verdict, to be read in a minute.

Every number comes from the results file beside the page. The appendix has rules, provenance and every cell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dovetail_study.best_known import Reachable
from dovetail_study.contestants import LEGEND
from dovetail_study.experiment import Experiment
from dovetail_study.ledger import NAME, Ledger
from dovetail_study.paper import BUDGETS, ITERATIONS
from dovetail_study.run import SEEDS
from dovetail_study.statistics import agreed, distinct, mean, present, proved, where
from dovetail_study.table import markdown_row
from dovetail_study.verdict import Verdict, Word

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
            *_top(claims),
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
    kind = "a quick run on small instances" if settings["quick"] else "a full run"
    counts = ", ".join(f"{sum(claim[0].word is each for claim in claims)} {each.value}" for each in Word)
    return [
        "# The paper's claims, measured",
        "",
        f"{len(claims)} claims: {counts}. {len(ledger.records):,} runs, {_drawn(ledger)}{settings['data']} "
        f"data; {seeds}; {kind}; one line each in [{NAME}]({NAME}). `dovetail bench` writes this page, and "
        f"its [appendix]({APPENDIX}) with the rules, what each verdict rests on, and every cell.",
        "",
        *_in_short(ledger),
    ]


def _drawn(ledger: Ledger) -> str:
    """How many runs are on drawn problems, which are nobody's data."""
    drawn = sum(row.get("family") is not None for row in ledger.records)
    return f"{drawn} of them on drawn problems, the others on " if drawn else "on "


def _in_short(ledger: Ledger) -> list[str]:
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


def _top(claims: Sequence[Sequence[Verdict]]) -> list[str]:
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
    header = ("verdict", "claim", "the paper", "here")
    return [markdown_row(header), markdown_row(["---"] * len(header)), *map(_row, claims)]


def _row(claim: Sequence[Verdict]) -> str:
    first = claim[0]
    cells = (word(claim), first.claim, first.paper, first.outcome)
    return markdown_row([cell.replace("|", "\\|") for cell in cells])


def _methods(ledger: Ledger) -> list[str]:
    there = present(LEGEND, ledger.records)
    return ["## The methods", "", *(f"- *{name}*: {LEGEND[name]}." for name in there), ""]

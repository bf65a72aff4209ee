"""The page of results: what the paper says, what was measured, and the verdict, to be read in a minute.

Every number comes from the results file beside the page. The appendix has rules, provenance and every cell.
"""

from __future__ import annotations

from collections.abc import Sequence

from dovetail_study.experiment import Experiment
from dovetail_study.ledger import NAME, Ledger
from dovetail_study.legend import LEGEND, earlier
from dovetail_study.statistics import distinct, present
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
RANK = {word: rank for rank, word in enumerate((Word.HOLDS, Word.IN_PART, Word.NOT, Word.UNTESTABLE))}


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
    """The verdict in the page's reading; another reading is named where the claim does better there."""
    first, *others = claim
    better = [other for other in others if RANK[other.word] < RANK[first.word]]
    aside = "".join(f" ({other.word.value} with {other.reading})" for other in better)
    return f"**{first.word.value}**{aside}"


def _introduction(ledger: Ledger, claims: Sequence[Sequence[Verdict]]) -> list[str]:
    settings = ledger.header["settings"]
    seeds = len(distinct(ledger.records, "seed"))
    kind = "a quick run on small instances" if settings["quick"] else "a full run"
    counts = ", ".join(f"{sum(claim[0].word is each for claim in claims)} {each.value}" for each in Word)
    return [
        "# The paper's claims, measured",
        "",
        f"{len(claims)} claims: {counts}. {len(ledger.records):,} runs on {settings['data']} data, {seeds} "
        f"seeds, {kind}; one line each in [{NAME}]({NAME}). `dovetail bench` writes this page, and its "
        f"[appendix]({APPENDIX}) with the rules, what each verdict rests on, and every cell.",
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
        f"of {READ}, and the other kind is named where the claim does better with it.",
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
    older = earlier(ledger.records)
    said = [f"- *{name}*: {LEGEND[name]}." for name in there] + ([f"- {older}"] if older else [])
    return ["## The methods", "", *said, ""]

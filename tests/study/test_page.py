"""The page is what its results file says, to the letter; a reader who recomputes a cell gets it.

Numbers are worked out here once more, with nothing of dovetail's, from the lines of the file: of the
published one, and of one that nobody measured, in which every end and every seed is there.
"""

import json
import math
import re
import statistics
from dataclasses import replace
from pathlib import Path

import pytest

from dovetail_study import EXPERIMENTS
from dovetail_study.bench import experiment_named
from dovetail_study.experiment import BenchSettings, Verdict, Word
from dovetail_study.ledger import NAME, Ledger
from dovetail_study.page import APPENDIX, READ, TOP, appendix, by_claim, document, word
from tests.study.made_up import row, whole
from tests.study.test_origin import follow

DOCS = Path(__file__).parent.parent.parent / "docs"
OWN = [name for name in EXPERIMENTS if name != "theory"]


def kept(folder, rows):
    """A results file with these rows, whoever they say made them."""
    path = Ledger.create(folder, BenchSettings()).path
    with path.open("a") as file:
        file.writelines(json.dumps(each) + "\n" for each in rows)
    return Ledger.open(folder)


def page_of(folder, rows):
    """The page of these rows, as it is written."""
    ledger = kept(folder, rows)
    there = dict.fromkeys(each["experiment"] for each in rows)
    return appendix([experiment_named(name) for name in there], ledger)


@pytest.fixture(scope="module", params=["published", "made up"])
def shown(request, tmp_path_factory):
    """A page, and the lines it was made of as plain data."""
    if request.param == "published":
        lines = (DOCS / NAME).read_text().splitlines()[1:]
        return (DOCS / APPENDIX).read_text(encoding="utf-8"), [json.loads(line) for line in lines]
    rows = [each for name in OWN for each in whole(name)]
    return page_of(tmp_path_factory.mktemp("page"), rows), rows


def table(page, heading):
    """The rows of the table under a heading, by the names of its columns."""
    lines = page[page.index(heading) :].splitlines()[1:]
    begin = next(i for i, line in enumerate(lines) if line.startswith("|"))
    cells = []
    for line in lines[begin:]:
        if not line.startswith("|"):
            break
        cells.append([part.strip() for part in re.split(r"(?<!\\)\|", line)[1:-1]])
    return [dict(zip(cells[0], each, strict=True)) for each in cells[2:]]


def shows(cell, values):
    """Whether a cell is the mean of the values, and their standard deviation where there are several."""
    if not values:
        return cell in ("–", "no reference yet")
    mean, _, spread = cell.replace(",", "").partition(" ± ")
    right = math.isclose(float(mean), statistics.mean(values), rel_tol=6e-3, abs_tol=1e-9)
    if len(values) > 1:
        right = right and math.isclose(float(spread), statistics.stdev(values), rel_tol=6e-2, abs_tol=1e-9)
    return right


def reachable(rows, value):
    """The best point of every instance into which auto looked, or whose optimum is proved."""
    best, looked = {}, set()
    for each in rows:
        if each.get("found") and each.get(value) is not None:
            key = instance(each)
            best[key] = max(best.get(key, -math.inf), each[value])
    for each in rows:
        key = instance(each)
        at_best = each.get("found") and key in best and each.get(value) == pytest.approx(best[key])
        if each.get("found") and (each["method"] == "auto" or (each["status"] == "optimal" and at_best)):
            looked.add(key)
    return {key: best[key] for key in looked}


def instance(each):
    """What was chosen, and which network came of it: the same seed made others on other machines."""
    chosen = tuple(each.get(name) for name in ("network", "n", "budgets", "init", "grid", "seed"))
    return (*chosen, f"{each['spread']:.4f}" if each.get("spread") is not None else "")


def test_every_line_of_e1s_table(shown):
    page, rows = shown
    mine = [each for each in rows if each["experiment"] == "e1"]
    best = reachable(mine, "potable")
    lines = table(page, "### E1: potable samples and seconds")
    for line in lines:
        cell = [each for each in mine if str(each["n"]) == line["n"]]
        cell = [each for each in cell if all(each[k] == line[k] for k in ("network", "budgets", "method"))]
        points = [each for each in cell if each["found"]]
        assert int(line["runs"]) == len(cell)
        assert int(line["found"]) == len(points)
        assert shows(line["potable"], [each["potable"] for each in points])
        assert shows(line["newly flipped"], [each["flipped"] for each in points])
        assert shows(line["seconds"], [each["seconds"] for each in cell if each.get("seconds") is not None])
        gaps = [
            100 * (1 - each["potable"] / best[instance(each)]) for each in points if best.get(instance(each))
        ]
        assert shows(line["gap to it, %"], [round(gap, 3) for gap in gaps]), line
    assert sum(int(line["runs"]) for line in lines) == len(mine)


def ending(each):
    """The column of big-M's table that a line belongs to."""
    if each["end"] == "other" and each["status"] == "optimal":
        return "proved"
    if each["end"] == "other" and each["scip"] in ("optimal", "gaplimit"):
        return "SCIP says optimal, not confirmed"
    return {
        "time": "searched to the limit", "writing": "never finished writing", "memory": "out of memory",
        "infeasible": "infeasible beside a verified point",
    }.get(each["end"], each["end"])  # fmt: skip


def test_ends_of_big_m_are_those_of_the_lines(shown):
    page, rows = shown
    for name, fields in (("e1", ("network", "n", "budgets")), ("e5", ("network",))):
        mine = [each for each in rows if (each["experiment"], each["method"]) == (name, "big-m")]
        heading = f"### {name.upper()}: how big-m ended"
        if not mine:
            assert heading not in page
            continue
        lines = table(page, heading)
        for line in lines:
            cell = [each for each in mine if all(str(each[field]) == line[field] for field in fields)]
            assert int(line["runs"]) == len(cell)
            for way in {ending(each) for each in cell}:
                assert int(line[way]) == sum(ending(each) == way for each in cell)
        assert sum(int(line["runs"]) for line in lines) == len(mine)


def test_the_lines_of_every_verdict_are_there(shown):
    page, rows = shown
    verdicts = table(page, "## Every claim in one table")
    for line in verdicts:
        if line["lines"] == "none":
            assert line["here"] == "no rows for it"
            continue
        used, chosen = follow(line["lines"], rows)
        of = re.search(r": \d+ of (\d+) line", line["lines"])
        assert len(chosen) == (int(of.group(1)) if of else used), line["claim"]
    words = re.search(
        r"(\d+) verdicts: (\d+) holds, (\d+) holds in part, (\d+) does not hold, (\d+) not", page
    )
    counted = [sum(line["verdict"] == f"**{word.value}**" for line in verdicts) for word in Word]
    assert [int(part) for part in words.groups()] == [len(verdicts), *counted]


def test_its_sentences_have_their_numbers(shown):
    assert "{" not in shown[0]  # a name in braces is one that nobody filled in


def test_it_says_who_made_the_runs_and_what_was_cut(tmp_path):
    rows = [row("e4", "paper", seed=seed, network="2x16", n=60) for seed in (42, 7)]
    page = page_of(tmp_path, rows)
    assert "- commit abc1234 on x86_64, 16 cores, 1 thread a run, 4 at a time: 2 runs" in page
    assert "4 of the paper's 5 seeds were left out" in page
    assert "*2 lines. All of commit abc1234 on x86_64, 16 cores" in page
    assert "- *paper*: Algorithm 1 with the paper's split and settings" in page
    assert "- *auto*" not in page


def test_what_is_planned_and_not_there_is_named(tmp_path):
    rows = whole("sensitivity")
    less = [each for each in rows if (each["method"], each["seed"]) != ("paper-balanced", 123)]
    page = page_of(tmp_path, less)
    gone = [each for each in rows if each not in less]
    sizes = ", ".join(str(n) for n in sorted({each["n"] for each in gone}))
    assert f"not run, for want of machine time alone: {len(gone)} more, paper-balanced {len(gone)} (" in page
    assert f"n {sizes}; seeds 123). They count neither for nor against a claim." in page


def test_what_cannot_fail_is_shown_apart_and_not_counted(tmp_path):
    rows = [row("e4", "paper", network="2x16", n=60), row("e4", "auto", network="2x16", n=60, limit=20.0)]
    page = page_of(tmp_path, rows)
    claims, apart = (table(page, heading) for heading in ("## Every claim in one table", "## Shown apart"))
    assert [line["claim"] for line in apart] == ["E4 no distortion of the learned models"]
    assert "E4 no distortion of the learned models" not in {line["claim"] for line in claims}
    assert f"{len(claims)} verdicts: " in page


def test_the_published_page_is_made_of_the_published_rows():
    ledger = Ledger.open(DOCS, any_version=True)
    experiments = [experiment_named(name) for name in EXPERIMENTS if ledger.of(name)]
    assert (DOCS / "results.md").read_text(encoding="utf-8") == document(experiments, ledger)
    assert (DOCS / APPENDIX).read_text(encoding="utf-8") == appendix(experiments, ledger)


MOST_WORDS, MOST_WORDS_OF_A_ROW = 6_000, 40


def test_the_published_page_is_read_in_a_minute():
    page = (DOCS / "results.md").read_text(encoding="utf-8")
    assert len(page.split()) <= MOST_WORDS
    top = table(page, "## In ten lines")
    assert [line["claim"] for line in top] == list(TOP)
    for line in table(page, "## Every claim"):
        assert len(line["here"].split()) <= MOST_WORDS_OF_A_ROW, line["claim"]
        assert line["verdict"].startswith("**")


def test_a_claim_has_one_verdict_however_often_it_is_judged():
    """That of the page's reading; another is named where its verdict is another one."""
    ours = Verdict("a", "1", "2", Word.NOT, reading=READ)
    theirs = Verdict("a", "1", "3", Word.IN_PART, reading="budgets total")
    assert by_claim([theirs, ours]) == [[ours, theirs]]
    assert word([ours, theirs]) == "**does not hold** (holds in part with budgets total)"
    assert word([replace(ours, word=Word.IN_PART), theirs]) == "**holds in part**"
    assert word([replace(ours, word=Word.HOLDS), theirs]) == "**holds** (holds in part with budgets total)"
    assert word([theirs]) == "**holds in part** (budgets total)"


def test_it_was_a_full_run_on_real_data():
    ledger = Ledger.open(DOCS, any_version=True)
    assert ledger.header["settings"]["data"] == "real"
    assert not ledger.header["settings"]["quick"]
    assert {record["experiment"] for record in ledger.records} == set(EXPERIMENTS)


def test_every_figure_lies_beside_it():
    for name in EXPERIMENTS:
        if name == "readings":  # a table says it
            continue
        for kind in ("png", "svg"):
            assert (DOCS / "figures" / f"{name}.{kind}").stat().st_size > 5_000


def test_the_readme_says_what_the_page_says():
    counts = re.search(
        r"(\d+) claims: (\d+) holds, (\d+) holds in part, (\d+) does not hold, (\d+) not testable",
        (DOCS / "results.md").read_text(encoding="utf-8"),
    )
    said = re.search(
        r"Of the paper's (\d+) claims (\d+) hold, (\d+) hold in part, (\d+) do not hold and (\d+) could not",
        (DOCS.parent / "README.md").read_text(encoding="utf-8"),
    )
    assert said.groups() == counts.groups()

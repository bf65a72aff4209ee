"""E1's verdicts: made-up rows in, the right word out."""

import pytest

from dovetail_study.e1 import BY_SCIP, E1
from dovetail_study.paper import BUDGETS, E1_NETWORKS, E1_SIZES, HEADLINE
from tests.study.made_up import AGREED, HOLDS, IN_PART, NOT, UNTESTABLE, all_words, judged, row, scip

CELL = {"network": "6x128", "n": 200}
OTHER = {"network": "2x16", "n": 25}
GRID = [{"network": network, "n": n} for network in E1_NETWORKS for n in E1_SIZES]
KNOWN, BESIDE = "E1 quality: DD beside the best known", "E1 quality: DD beside big-M's own points"


def paper(**fields):
    return row("e1", "paper", **{**CELL, **fields})


def auto(**fields):
    return row("e1", "auto", **{**CELL, **fields})


def big_m(end, **fields):
    return scip("e1", end, **{**CELL, **fields})


def thrice(*rows):
    """With three seeds."""
    return [{**each, "seed": seed} for seed in (42, 123, 456) for each in rows]


def by_scip(each):
    """Runs of the paper's loop as those with its own MIP solver."""
    return {**each, "method": "paper-scip"} if each["method"] == "paper" else each


CASES = [
    (KNOWN, HOLDS, [paper(), big_m("proved")]),
    (KNOWN, NOT, [paper(potable=6), auto()]),
    (KNOWN, NOT, [paper(potable=6), big_m("proved")]),
    (KNOWN, IN_PART, [paper(potable=97), auto(potable=100), paper(potable=6, **OTHER), auto(**OTHER)]),
    (KNOWN, NOT, [paper(), auto(), paper(potable=6, **OTHER), auto(**OTHER)]),  # the best known is its own
    (BESIDE, HOLDS, [each for cell in GRID for each in (paper(**cell), big_m("proved", **cell))]),
    (BESIDE, IN_PART, [paper(), big_m("proved")]),  # one cell of all configurations
    (BESIDE, UNTESTABLE, [paper(), big_m("time")]),  # its limit cut its point short
    (BESIDE, NOT, [paper(potable=6), big_m("proved")]),
    (BESIDE, UNTESTABLE, [paper(), big_m("writing")]),
    (KNOWN, NOT, [paper(potable=6), big_m("time", potable=3), auto()]),  # better than a stopped SCIP
    (KNOWN, UNTESTABLE, [paper(), auto()]),  # as good as the best known, which is not proved
    (KNOWN, UNTESTABLE, [paper(), row("e1", "dual-decomposition", potable=3, **CELL)]),  # nobody looked
    (KNOWN, UNTESTABLE, [paper(n=500, potable=6), auto(n=500)]),  # not one of E1's sizes
    ("E1 time", HOLDS, [paper(seconds=8.0, **AGREED), big_m("time")]),
    ("E1 time", IN_PART, [paper(seconds=8.0), big_m("time")]),  # the end of 50 iterations is no solution
    ("E1 time", NOT, [paper(seconds=8.0, potable=6), big_m("time")]),  # fast to a worse point
    ("E1 time", IN_PART, [paper(seconds=8.0), big_m("time", found=False)]),  # big-M has nothing better
    ("E1 time", NOT, [paper(seconds=8.0, best_at=None), big_m("time", found=False)]),  # nor has DD
    ("E1 time", NOT, [paper(seconds=50.0), big_m("time")]),
    ("E1 time", NOT, [paper(seconds=50.0)]),  # whatever big-M takes
    ("E1 time", NOT, [paper(seconds=8.0, **AGREED), big_m("proved")]),  # 60 s are not 100 s
    ("E1 time", UNTESTABLE, [paper(seconds=8.0), big_m("writing")]),
    ("E1 time", UNTESTABLE, [paper(seconds=50.0, n=500), big_m("time", n=500)]),
    ("E1 speed-up", HOLDS, thrice(paper(**AGREED), big_m("proved"))),
    ("E1 speed-up", HOLDS, thrice(paper(), big_m("proved"))),  # 50 iterations, and nothing is lost
    ("E1 speed-up", IN_PART, thrice(paper(), big_m("time"))),  # a lower bound that is enough
    ("E1 speed-up", NOT, thrice(paper(potable=6), big_m("proved"))),
    ("E1 speed-up", NOT, thrice(paper(seconds=20.0, **AGREED), big_m("proved"))),
    ("E1 speed-up", UNTESTABLE, thrice(paper(seconds=50.0), big_m("time"))),  # a lower bound that is not
    ("E1 speed-up", UNTESTABLE, thrice(paper(), big_m("writing"))),
    ("E1 speed-up", UNTESTABLE, thrice(paper(), big_m("infeasible"))),
    ("E1 speed-up", UNTESTABLE, [paper(**AGREED), big_m("proved")]),  # one pair says little
    *[
        (f"{BY_SCIP} DD near", word, [by_scip(each) for each in rows])
        for word, rows in (
            (HOLDS, [paper(seconds=8.0, **AGREED), big_m("time")]),
            (NOT, [paper(seconds=50.0), big_m("time")]),
            (UNTESTABLE, [paper(seconds=8.0), big_m("writing")]),
        )
    ],
    *[
        (f"{BY_SCIP} speed-up", word, [by_scip(each) for each in rows])
        for word, rows in (
            (HOLDS, thrice(paper(**AGREED), big_m("proved"))),
            (NOT, thrice(paper(seconds=20.0, **AGREED), big_m("proved"))),
            (UNTESTABLE, thrice(paper(), big_m("writing"))),
        )
    ],
]
LONG = {"seconds": 1000.0, "solving_seconds": 900.0}
HEADLINES = [
    ("E1 headline", HOLDS, [paper(seconds=8.7, **HEADLINE, **AGREED), big_m("time", **HEADLINE, **LONG)]),
    ("E1 headline", IN_PART, [paper(seconds=27.0, **HEADLINE), big_m("time", **HEADLINE, **LONG)]),
    ("E1 headline", NOT, [paper(seconds=40.0, **HEADLINE), big_m("time", **HEADLINE, **LONG)]),
    ("E1 headline", NOT, [paper(seconds=27.0, **HEADLINE), big_m("proved", **HEADLINE)]),
    ("E1 headline", UNTESTABLE, [paper(seconds=27.0, **HEADLINE), big_m("time", **HEADLINE)]),
    ("E1 headline", UNTESTABLE, [paper(**HEADLINE), big_m("writing", **HEADLINE)]),
    ("E1 headline", UNTESTABLE, [paper(**HEADLINE), big_m("memory", **HEADLINE)]),
]


@pytest.mark.parametrize("budgets", BUDGETS)
@pytest.mark.parametrize(("claim", "word", "rows"), CASES)
def test_each_reading_of_the_budgets_is_judged_by_its_own_rows(claim, word, rows, budgets):
    mine = [{**each, "budgets": budgets} for each in rows]
    found = judged(E1, mine, claim)
    assert found.word is word, found
    if found.rows:
        assert found.reading == f"budgets {budgets}"


@pytest.mark.parametrize(("claim", "word", "rows"), HEADLINES)
def test_the_headline(claim, word, rows):
    assert judged(E1, rows, claim).word is word


def test_every_claim_was_seen_to_hold_to_fail_and_not_to_be_testable():
    seen = all_words(CASES + HEADLINES)
    assert all({HOLDS, NOT, UNTESTABLE} <= words for words in seen.values())
    claims = {verdict.named for verdict in E1.verdicts([])}
    assert all(any(claim.startswith(begin) for begin in seen) for claim in claims)

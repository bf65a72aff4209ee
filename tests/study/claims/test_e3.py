"""E3's verdicts: made-up rows in, the right word out."""

import pytest

from dovetail_study.e3 import E3, as_fast
from dovetail_study.paper import BUDGETS, DD_ITERATIONS, E3_SIZES
from tests.study.made_up import AGREED, HOLDS, IN_PART, NOT, UNTESTABLE, all_words, judged, row, scip


def at(method, sizes=E3_SIZES, **fields):
    """A row of every size."""
    return [row("e3", method, network="2x16", n=n, **fields) for n in sizes]


def big_m(end, sizes=E3_SIZES, **fields):
    return [scip("e3", end, network="2x16", n=n, **fields) for n in sizes]


def as_the_paper_says():
    return [
        row("e3", "paper", network="2x16", n=n, stop="agreed", iterations=k) for n, k in DD_ITERATIONS.items()
    ]


def speeds(method, *seconds, **fields):
    """SCIP needs 60 s: what the method needs at each size."""
    return [
        row("e3", method, network="2x16", n=n, seconds=s, **fields)
        for n, s in zip(E3_SIZES, seconds, strict=True)
    ]


BEST, WORSE = {"potable": 10}, {"potable": 6}
FAST = (1.0, 1.0, 0.5, 0.5)
CASES = [
    (
        "E3 SSG loses",
        HOLDS,
        at("ssg", (20, 60, 80), potable=5) + at("ssg", (40,), potable=9) + at("auto"),
    ),  # short of a known point is short of the optimum
    ("E3 SSG loses", IN_PART, at("ssg", **WORSE) + at("auto")),  # not as the paper's figures have it
    ("E3 SSG loses", IN_PART, at("ssg", E3_SIZES[:2], **WORSE) + at("ssg", E3_SIZES[2:]) + at("auto")),
    ("E3 SSG loses", NOT, at("ssg") + big_m("proved")),
    ("E3 SSG loses", UNTESTABLE, at("ssg") + at("auto")),  # the optimum may be better still
    ("E3 SSG loses", UNTESTABLE, at("ssg", **WORSE) + at("paper")),
    ("E3 DD keeps", HOLDS, at("paper") + big_m("proved")),
    (
        "E3 DD keeps",
        IN_PART,
        at("paper", E3_SIZES[:2], **WORSE) + at("paper", E3_SIZES[2:]) + big_m("proved"),
    ),
    ("E3 DD keeps", NOT, at("paper", **WORSE) + at("auto")),
    ("E3 DD keeps", NOT, at("paper", **WORSE) + at("auto") + big_m("time", potable=3)),
    ("E3 DD keeps", UNTESTABLE, at("paper") + at("auto") + big_m("time", potable=3)),
    ("E3 DD keeps", UNTESTABLE, at("paper", **WORSE)),
    ("E3 removing the dual update alone", HOLDS, at("paper-no-dual", potable=5) + at("paper")),
    ("E3 removing the dual update alone", IN_PART, at("paper-no-dual", **WORSE) + at("paper")),  # 40 %
    ("E3 removing the dual update alone", IN_PART, at("paper-no-dual", potable=9) + at("paper")),
    ("E3 removing the dual update alone", NOT, at("paper-no-dual") + at("paper")),
    ("E3 removing the dual update alone", UNTESTABLE, at("ssg", **WORSE) + at("paper")),  # not the clean one
    ("E3 SSG in place of DD", HOLDS, at("ssg", potable=4) + at("paper")),
    ("E3 SSG in place of DD", IN_PART, at("ssg", **WORSE) + at("paper")),
    ("E3 SSG in place of DD", NOT, at("ssg") + at("paper")),
    ("E3 SSG in place of DD", UNTESTABLE, at("paper")),
    ("E3 without dual updates", HOLDS, at("ssg", iterations=100) + at("paper", stop="agreed", iterations=1)),
    ("E3 without dual updates", NOT, at("ssg", iterations=100) + at("paper")),
    ("E3 without dual updates", UNTESTABLE, at("ssg", iterations=100)),
    ("E3 iterations of SSG", HOLDS, at("ssg", best_at=80)),
    ("E3 iterations of SSG", NOT, at("ssg", best_at=30)),
    ("E3 iterations of SSG", UNTESTABLE, at("paper", best_at=80)),
    ("E3 iterations of DD", HOLDS, as_the_paper_says()),
    ("E3 iterations of DD", NOT, at("paper")),  # the cap is not convergence
    ("E3 iterations of DD", UNTESTABLE, at("ssg")),
    ("E3 speed-up of SSG", HOLDS, speeds("ssg", 200.0, 20.0, 2.0, 2.0) + big_m("proved")),
    (
        "E3 speed-up of SSG",
        IN_PART,
        speeds("ssg", 1.0, 1.0, 1.0, 1.0) + big_m("proved"),
    ),  # too fast at n = 20
    ("E3 speed-up of SSG", NOT, speeds("ssg", 30.0, 30.0, 30.0, 30.0) + big_m("proved")),
    ("E3 speed-up of SSG", UNTESTABLE, speeds("ssg", 1.0, 1.0, 1.0, 1.0) + big_m("writing")),
    ("E3 speed-up of DD", HOLDS, speeds("paper", *FAST, **AGREED) + big_m("proved")),
    ("E3 speed-up of DD", HOLDS, speeds("paper", *FAST) + big_m("proved")),  # nothing is lost
    ("E3 speed-up of DD", NOT, speeds("paper", *FAST, **WORSE) + big_m("proved")),  # fast to worse points
    ("E3 speed-up of DD", NOT, speeds("paper", 60.0, 60.0, 60.0, 60.0, **AGREED) + big_m("proved")),
    ("E3 speed-up of DD", UNTESTABLE, speeds("paper", *[200.0] * 4, **AGREED) + big_m("time")),
]


@pytest.mark.parametrize("budgets", BUDGETS)
@pytest.mark.parametrize(("claim", "word", "rows"), CASES)
def test_each_reading_of_the_budgets_is_judged_by_its_own_rows(claim, word, rows, budgets):
    mine = [{**each, "budgets": budgets} for each in rows]
    found = judged(E3, mine, claim)
    assert (found.word, found.reading) == (word, f"budgets {budgets}"), found


def test_budgets_of_both_kinds_are_judged_apart():
    rows = [
        {**each, "budgets": budgets}
        for budgets, potable in (("total", 4), ("per sample", 10))
        for each in at("ssg", potable=potable) + at("paper")
    ]
    words = {v.reading: v.word for v in E3.verdicts(rows) if v.claim.startswith("E3 SSG in place of DD")}
    assert words == {"budgets total": HOLDS, "budgets per sample": NOT}


def test_every_claim_was_seen_to_hold_to_fail_and_not_to_be_testable():
    seen = all_words(CASES)
    assert all({HOLDS, NOT, UNTESTABLE} <= words for words in seen.values())
    assert len(seen) == len(E3.verdicts([]))


def test_rows_that_name_no_budgets_are_of_totals():
    found = judged(E3, at("paper", **WORSE) + at("auto"), "E3 DD keeps it (budgets total)")
    assert found.word is NOT
    assert "n=20: 0.6, n=40: 0.6, n=60: 0.6, n=80: 0.6 of the best known" in found.ours


@pytest.mark.parametrize(
    ("ours", "claimed", "at_least", "word"),
    [
        (3.0, 2.0, False, True), (3.0, 2.0, True, True), (1.5, 2.0, False, False), (1.5, 2.0, True, None),
        (0.5, 0.3, False, True), (0.5, 0.3, True, None), (1.5, 0.3, False, False), (1.5, 0.3, True, False),
    ],
)  # fmt: skip
def test_a_lower_bound_settles_a_speed_up_only_if_it_is_enough(ours, claimed, at_least, word):
    assert as_fast(ours, claimed, at_least) is word

"""E2's verdicts: made-up rows in, the right word out."""

import pytest

from dovetail_study.e2 import E2
from dovetail_study.paper import BEYOND, INTRODUCTION
from tests.study.made_up import AGREED, HOLDS, IN_PART, NOT, UNTESTABLE, all_words, judged, row, scip


def paper(network="16x128", n=100, init="default", **fields):
    return row("e2", "paper", network=network, n=n, init=init, **fields)


def auto(network, **fields):
    return row("e2", "auto", network=network, n=100, init="default", **fields)


def five(agreed, **fields):
    return [paper(seed=seed, **fields, **(AGREED if seed < agreed else {})) for seed in range(5)]


def big_m(end, network="16x128", n=100, **fields):
    return scip("e2", end, network=network, n=n, init="default", **fields)


def everywhere(end, **fields):
    return [big_m(end, network, **fields) for network in BEYOND]


def counted(n, variables, constraints, columns=500):
    fields = {"variables": variables, "constraints": constraints, "coefficients": 1, "columns": columns}
    return row("e2", "size", network="64x512", n=n, init="default", found=False, **fields)


def grows(power, largest="64x512"):
    return [
        paper(network, parameters=p, mip_seconds=0.0, nn_seconds=0.01 * p**power, iterations=1)
        for network, p in (("2x16", 10), ("4x32", 100), (largest, 1000))
    ]


ALONE = {"memory_limit": None, "shared": 1}
HOURS = {"seconds": 7200.0, "solving_seconds": 3600.0}
CASES = [
    ("E2 success of 2x16", HOLDS, five(2, network="2x16")),
    ("E2 success of 2x16", IN_PART, five(2, network="2x16") + five(0, network="2x16", init="he")),
    ("E2 success of 2x16", NOT, five(0, network="2x16")),
    ("E2 success of 2x16", UNTESTABLE, five(2, network="4x32")),
    ("E2 success from 16x128", HOLDS, five(5)),
    ("E2 success from 16x128", HOLDS, five(5) + five(0, init="residual")),  # not the paper's network
    ("E2 success from 16x128", UNTESTABLE, five(5, init="residual")),
    ("E2 success from 16x128", NOT, five(0)),
    ("E2 success from 16x128", UNTESTABLE, five(5, network="8x64")),
    ("E2 64x512: total time", HOLDS, [paper("64x512", **AGREED)]),
    ("E2 64x512: total time", HOLDS, [paper("64x512"), auto("64x512")]),
    ("E2 64x512: total time", IN_PART, [paper("64x512")]),  # nobody knows what its point is worth
    ("E2 64x512: total time", UNTESTABLE, [paper("64x512", spread=0.0, **AGREED)]),  # a constant network
    (
        "E2 64x512: total time",
        IN_PART,
        [paper("64x512", potable=6, **AGREED), auto("64x512")],
    ),  # it lost some
    ("E2 64x512: total time", NOT, [paper("64x512", best_at=None)]),  # fast to where it began
    ("E2 64x512: total time", NOT, [paper("64x512", seconds=91.0, **AGREED)]),
    ("E2 64x512: total time", UNTESTABLE, [paper("32x256")]),
    ("E2 time per iteration", HOLDS, grows(0.6)),
    ("E2 time per iteration", IN_PART, grows(0.6, "8x64")),  # the largest network is not there
    ("E2 time per iteration", NOT, grows(1.3)),
    ("E2 time per iteration", UNTESTABLE, grows(0.6)[:2]),
    (
        "E2 time per iteration",
        UNTESTABLE,  # another machine for every size says nothing of growth
        [{**each, "machine": name} for each, name in zip(grows(0.6), "abc", strict=True)],
    ),
    ("E2 big-M beyond", HOLDS, everywhere("time")),
    ("E2 big-M beyond", HOLDS, everywhere("memory", **ALONE)),
    ("E2 big-M beyond", IN_PART, everywhere("memory", memory_limit=12.0)),
    ("E2 big-M beyond", IN_PART, [big_m("time"), big_m("writing", "32x256"), big_m("writing", "64x512")]),
    ("E2 big-M beyond", NOT, everywhere("proved")),
    ("E2 big-M beyond", UNTESTABLE, everywhere("writing")),
    ("E2 big-M beyond", UNTESTABLE, everywhere("refused")),
    ("E2 big-M beyond", UNTESTABLE, [big_m("time", "4x32")]),
    ("Memory of big-M", HOLDS, [big_m("memory", **ALONE)]),
    ("Memory of big-M", IN_PART, [big_m("memory", memory_limit=12.0)]),
    ("Memory of big-M", IN_PART, [big_m("memory", memory_limit=None)]),  # beside other runs
    ("Memory of big-M", IN_PART, [big_m("memory")]),  # the row does not say
    ("Memory of big-M", NOT, everywhere("time")),
    ("Memory of big-M", UNTESTABLE, [big_m("time"), big_m("writing", "32x256")]),
    ("Memory of big-M", UNTESTABLE, [big_m("memory", "4x32")]),
    ("Introduction", HOLDS, [big_m("time", **INTRODUCTION, **HOURS)]),
    ("Introduction", NOT, [big_m("proved", **INTRODUCTION)]),
    ("Introduction", UNTESTABLE, [big_m("memory", **INTRODUCTION)]),
    ("Introduction", UNTESTABLE, [big_m("writing", **INTRODUCTION)]),
    ("Model size", HOLDS, [counted(500, 5_900_000, 7_800_000)]),
    ("Model size", IN_PART, [counted(500, 5_900_000, 7_800_000, columns=14_000)]),
    ("Model size", NOT, [counted(500, 49_000_000, 65_000_000), counted(60, 5_900_000, 7_860_000)]),
    ("Model size", UNTESTABLE, [counted(60, 5_900_000, 7_860_000)]),
]


@pytest.mark.parametrize(("claim", "word", "rows"), CASES)
def test_verdicts(claim, word, rows):
    assert judged(E2, rows, claim).word is word, judged(E2, rows, claim)


def test_every_claim_was_seen_to_hold_to_fail_and_not_to_be_testable():
    seen = all_words(CASES)
    assert all({HOLDS, NOT, UNTESTABLE} <= words for words in seen.values())
    assert len(seen) == len(E2.verdicts([]))

"""E2's verdicts: made-up rows in, the right word out."""

import pytest

from dovetail.experiments.e2 import E2
from dovetail.experiments.paper import BEYOND, INTRODUCTION
from tests.experiments.made_up import AGREED, HOLDS, IN_PART, NOT, UNTESTABLE, all_words, judged, row, scip


def paper(network="16x128", n=100, init="default", **fields):
    return row("e2", "paper", network=network, n=n, init=init, **fields)


def five(agreed, **fields):
    return [paper(seed=seed, **fields, **(AGREED if seed < agreed else {})) for seed in range(5)]


def big_m(end, network="16x128", n=100, **fields):
    return scip("e2", end, network=network, n=n, init="default", **fields)


def everywhere(end):
    return [big_m(end, network) for network in BEYOND]


def counted(n, variables, constraints, columns=500):
    fields = {"variables": variables, "constraints": constraints, "coefficients": 1, "columns": columns}
    return row("e2", "size", network="64x512", n=n, init="default", found=False, **fields)


def grows(power):
    return [
        paper(network, parameters=p, mip_seconds=0.0, nn_seconds=0.01 * p**power, iterations=1)
        for network, p in (("2x16", 10), ("4x32", 100), ("8x64", 1000))
    ]


HOURS = {"seconds": 7200.0, "solving_seconds": 3600.0}
CASES = [
    ("E2 success of 2x16", HOLDS, five(2, network="2x16")),
    ("E2 success of 2x16", IN_PART, five(2, network="2x16") + five(0, network="2x16", init="he")),
    ("E2 success of 2x16", NOT, five(0, network="2x16")),
    ("E2 success of 2x16", UNTESTABLE, five(2, network="4x32")),
    ("E2 success from 16x128", HOLDS, five(5)),
    ("E2 success from 16x128", NOT, five(0)),
    ("E2 success from 16x128", UNTESTABLE, five(5, network="8x64")),
    ("E2 64x512: total time", HOLDS, [paper("64x512", **AGREED)]),
    ("E2 64x512: total time", IN_PART, [paper("64x512")]),
    ("E2 64x512: total time", NOT, [paper("64x512", seconds=91.0, **AGREED)]),
    ("E2 64x512: total time", UNTESTABLE, [paper("32x256")]),
    ("E2 time per iteration", HOLDS, grows(0.6)),
    ("E2 time per iteration", NOT, grows(1.3)),
    ("E2 time per iteration", UNTESTABLE, grows(0.6)[:2]),
    (
        "E2 time per iteration",
        UNTESTABLE,  # another machine for every size says nothing of growth
        [{**each, "machine": name} for each, name in zip(grows(0.6), "abc", strict=True)],
    ),
    ("E2 big-M beyond", HOLDS, everywhere("time")),
    ("E2 big-M beyond", HOLDS, everywhere("memory")),
    ("E2 big-M beyond", IN_PART, [big_m("time"), big_m("writing", "32x256"), big_m("writing", "64x512")]),
    ("E2 big-M beyond", NOT, everywhere("proved")),
    ("E2 big-M beyond", UNTESTABLE, everywhere("writing")),
    ("E2 big-M beyond", UNTESTABLE, everywhere("refused")),
    ("E2 big-M beyond", UNTESTABLE, [big_m("time", "4x32")]),
    ("Memory of big-M", HOLDS, [big_m("memory")]),
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


def test_arithmetic_is_not_what_the_authors_did():
    rows = [counted(500, 49_000_000, 65_000_000, 14_000), counted(60, 5_900_000, 7_860_000)]
    said = judged(E2, rows, "Model size").ours
    assert "by arithmetic 60 samples have 5.9 M variables" in said
    assert "what the authors counted is not known" in said
    assert "14,000 columns, 28 times the paper's" in said


def test_ends_are_counted_with_the_memory_at_which_it_ran_out():
    rows = [
        big_m("memory", memory_gb=11.0),
        big_m("memory", "32x256", memory_gb=12.5),
        big_m("writing", "64x512"),
    ]
    said = judged(E2, rows, "E2 big-M beyond").ours
    assert "of 3 runs 1 never finished writing, 2 out of memory (at 11 GB and more)" in said
    assert "of the 2 in which SCIP searched or memory ran out (16x128, 32x256" in said
    assert "16x128 11, 32x256 12.5" in judged(E2, rows, "Memory of big-M").ours


def test_constant_networks_are_counted_and_explain_nothing_by_themselves():
    rows = five(0, spread=0.0) + [
        row(
            "e2",
            "dual-decomposition",
            seed=seed,
            network="16x128",
            n=100,
            init="default",
            spread=0.0,
            **AGREED,
        )
        for seed in range(5)
    ]
    assert "5 of these networks constant" in judged(E2, rows, "E2 success from 16x128").ours
    said = E2.reading(rows)
    assert "paper in 0 of 5, dual-decomposition in 5 of 5" in said
    assert "hypothesis" in said
    assert E2.reading(five(0)) == ""

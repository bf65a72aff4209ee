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
    assert "5 of the networks constant" in judged(E2, rows, "E2 success from 16x128").ours
    said = E2.reading(rows)
    assert "paper in 0 of 5, dual-decomposition in 5 of 5" in said
    assert "hypothesis" in said
    assert E2.reading(five(0)) == ""


def test_success_says_what_it_rests_on():
    rows = five(0, residual=0.003) + five(0, network="64x512", residual=0.0009, spread=0.0)
    said = judged(E2, rows, "E2 success from 16x128").ours
    assert (
        "within 0.0001 of each other in 0 of 5 runs on networks that are not constant (least last residual "
        "0.003), and in 0 of 5 on constant ones"
    ) in said
    beside = judged(E2, five(5) + five(1, init="residual"), "E2 success from 16x128").ours
    assert "beside it, not judged: He's in a residual network 1 of 5" in beside
    assert "in 5 of 5 runs" in judged(E2, five(5, residual=5e-5), "E2 success from 16x128").ours


def test_growth_is_told_machine_by_machine():
    rows = grows(0.6, "8x64") + [{**each, "device": "NVIDIA H200"} for each in grows(0.3)]
    said = judged(E2, rows, "E2 time per iteration").ours
    assert "cpu, x86_64, 16 cores: 0.6 over 2x16, 4x32, 8x64" in said
    assert "NVIDIA H200, x86_64, 16 cores: 0.3 over 2x16, 4x32, 64x512" in said
    residual = [{**each, "init": "residual"} for each in grows(0.3)]
    assert judged(E2, residual, "E2 time per iteration").word is UNTESTABLE


def test_beyond_6x128_a_residual_network_is_not_the_papers_and_a_refusal_has_its_reason():
    wide = big_m("refused", network="64x512", message="neurons are too wide for SCIP; use the other form")
    other = {**big_m("refused", network="64x512", message="layer Residual; no"), "init": "residual"}
    said = judged(E2, [big_m("time"), wide, other], "E2 big-M beyond 6x128").ours
    assert said.startswith("of 2 runs 1 searched to the limit, 1 refused; ")
    assert said.endswith("; refused: neurons are too wide for SCIP (64x512)")


def test_a_model_that_was_never_written_is_said_to_be():
    unwritten = {
        "solving_seconds": None,
        "message": "9 GB of 9 GB while the model was written",
    }
    rows = [big_m("memory", network="64x512", n=n, **unwritten) for n in (100, 500)]
    rows += [big_m("memory"), big_m("proved", network="8x64")]
    said = judged(E2, rows, "Memory of big-M").ours
    assert said.startswith(
        "out of memory in 2 of 2 runs beyond 6x128, 1 of these while the model was still being"
    )
    assert "8x64 3.5, 16x128 3.5, 64x512 3.5" in said
    assert "1 s of writing, SCIP never began" in judged(E2, rows, "Introduction: SCIP times out").ours


def test_a_run_to_which_scip_says_that_memory_is_short_is_out_of_memory():
    words = "EngineError: SCIP gave up (SCIP: insufficient memory error!)"
    gave_up = big_m("time") | {"end": "other", "scip": None, "message": words}
    assert judged(E2, [gave_up], "Memory of big-M").ours.startswith("out of memory in 1 of 1 runs")


def test_writing_that_was_not_finished_on_a_crowded_machine_is_said_to_be_so():
    claim = "E2 big-M beyond 6x128"
    alone = judged(E2, [big_m("writing"), big_m("time")], claim).ours
    assert "never finished writing" in alone
    assert "more runs at a time than cores" not in alone
    crowded = big_m("writing", machine="aarch64, 2 cores", shared=5)
    assert judged(E2, [crowded, big_m("time")], claim).ours.endswith(
        "; of those that never finished writing 1 of them with more runs at a time than cores"
    )

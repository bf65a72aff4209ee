"""E5's verdicts: made-up rows in, the right word out."""

import pytest

from dovetail_study.e5 import E5
from dovetail_study.paper import E5_NETWORKS, E5_SECONDS
from tests.study.made_up import AGREED, HOLDS, IN_PART, NOT, UNTESTABLE, all_words, judged, row, scip


def on(method, networks=E5_NETWORKS, **fields):
    return [row("e5", method, network=network, grid=6, potable=None, **fields) for network in networks]


def big_m(end, **fields):
    return [scip("e5", end, network=network, grid=6, potable=None, **fields) for network in E5_NETWORKS]


def as_fast_as_the_paper(method, **fields):
    return [
        row("e5", method, network=network, grid=6, potable=None, seconds=seconds, **fields)
        for network, seconds in zip(E5_NETWORKS, E5_SECONDS[method], strict=True)
    ]


def swapped(ratio, objective=10.0, network_ratio=1.0, stop="agreed"):
    """The barrier so many times slower in all, and so many times slower in its network steps."""
    slow = on("paper-barrier", seconds=2.0 * ratio, nn_seconds=network_ratio, objective=objective, stop=stop)
    return on("paper", seconds=2.0, nn_seconds=1.0, stop=stop) + slow


def stuck(rows):
    """The barrier's runs have no point but the start's."""
    return [{**each, "best_at": None} if each["method"] == "paper-barrier" else each for each in rows]


def rising(*seconds):
    return [{**each, "seconds": s} for each, s in zip(big_m("proved"), seconds, strict=True)]


BARRIER, GRADIENT = "paper-barrier", "paper"
QUALITY, NEEDED = "Near-optimal quality", "Dual updates are needed"
PROVED = {"status": "optimal", "stop": "proved"}
CASES = [
    (QUALITY, HOLDS, on(GRADIENT, objective=9.9) + on("auto", **PROVED)),
    (QUALITY, NOT, on(GRADIENT, objective=6.0) + on("auto", **PROVED)),
    (QUALITY, UNTESTABLE, on(GRADIENT) + on("auto")),  # as good as the best known, which is not proved
    (QUALITY, UNTESTABLE, on(GRADIENT)),
    (NEEDED, HOLDS, on(GRADIENT) + on("paper-no-dual", objective=4.0)),
    (NEEDED, IN_PART, on(GRADIENT) + on("paper-no-dual", objective=8.0)),
    (NEEDED, NOT, on(GRADIENT) + on("paper-no-dual")),
    (NEEDED, UNTESTABLE, on(GRADIENT)),
    ("E5 seconds of SCIP", HOLDS, rising(120.0, 300.0, 800.0)),
    ("E5 seconds of SCIP", IN_PART, rising(120.0, 900.0, 800.0)),  # it does not rise
    ("E5 seconds of SCIP", IN_PART, rising(400.0, 500.0, 800.0)),  # more than twice the paper's
    ("E5 seconds of SCIP", IN_PART, big_m("time", seconds=900.0)),
    ("E5 seconds of SCIP", UNTESTABLE, big_m("time", seconds=900.0)[:1] + big_m("infeasible")[1:]),
    ("E5 seconds of SCIP", NOT, rising(50.0, 300.0, 800.0)),
    ("E5 seconds of SCIP", NOT, rising(50.0, 300.0, 800.0)[:1] + big_m("memory")[1:]),  # refuted by one
    ("E5 seconds of SCIP", NOT, big_m("proved", seconds=60.0)),
    ("E5 seconds of SCIP", UNTESTABLE, big_m("infeasible")),
    ("E5 seconds of SCIP", UNTESTABLE, big_m("writing")),
    ("E5 seconds of the barrier", HOLDS, as_fast_as_the_paper(BARRIER, **AGREED)),
    ("E5 seconds of the barrier", IN_PART, as_fast_as_the_paper(BARRIER)),
    ("E5 seconds of the barrier", NOT, as_fast_as_the_paper(BARRIER, objective=6.0) + big_m("proved")),
    ("E5 seconds of the barrier", NOT, as_fast_as_the_paper(BARRIER, best_at=None)),
    ("E5 seconds of the barrier", NOT, on(BARRIER, seconds=300.0, stop="time")),
    ("E5 seconds of the barrier", UNTESTABLE, on(GRADIENT)),
    ("E5 seconds of projected gradient", HOLDS, as_fast_as_the_paper(GRADIENT, **AGREED)),
    ("E5 seconds of projected gradient", IN_PART, as_fast_as_the_paper(GRADIENT)),
    ("E5 seconds of projected gradient", NOT, on(GRADIENT, seconds=300.0, stop="time")),
    ("E5 seconds of projected gradient", UNTESTABLE, on("paper-outputs")),
    ("E5 speed-up of the barrier", HOLDS, on(BARRIER, **AGREED) + big_m("proved")),
    ("E5 speed-up of the barrier", HOLDS, on(BARRIER) + big_m("proved")),
    ("E5 speed-up of the barrier", NOT, on(BARRIER, seconds=30.0, **AGREED) + big_m("proved")),
    ("E5 speed-up of the barrier", UNTESTABLE, on(BARRIER, seconds=300.0) + big_m("time")),
    ("E5 speed-up of projected gradient", HOLDS, on(GRADIENT, seconds=0.4, **AGREED) + big_m("proved")),
    ("E5 speed-up of projected gradient", NOT, on(GRADIENT, **AGREED) + big_m("proved")),
    ("E5 speed-up of projected gradient", UNTESTABLE, on(GRADIENT, **AGREED) + big_m("infeasible")),
    ("Swapping", HOLDS, swapped(1.5)),
    ("Swapping", IN_PART, swapped(9.0)),  # the same objective, not the same time
    ("Swapping", IN_PART, swapped(1.5, objective=9.0)),
    ("Swapping", IN_PART, swapped(1.0, stop="time")),  # both met the limit: their times are not known
    ("Swapping", NOT, swapped(9.0, objective=9.0)),
    ("Swapping", NOT, stuck(swapped(1.5, objective=9.0))),  # soon done with nothing
    ("Swapping", UNTESTABLE, on(GRADIENT)),
    ("E5 barrier over", HOLDS, swapped(10.0)),
    ("E5 barrier over", IN_PART, swapped(3.0)),
    ("E5 barrier over", NOT, swapped(1.0)),
    ("E5 barrier over", UNTESTABLE, on(BARRIER)),
    ("E5 barrier over", UNTESTABLE, swapped(1.0, network_ratio=12.0, stop="time")),
    ("Barrier is better", HOLDS, swapped(1.0, objective=11.0, network_ratio=0.5)),
    ("Barrier is better", IN_PART, swapped(1.0, objective=11.0, network_ratio=2.0)),
    ("Barrier is better", IN_PART, swapped(1.0, objective=9.0, network_ratio=0.5)),
    ("Barrier is better", NOT, stuck(swapped(1.0, objective=9.0, network_ratio=0.5))),
    ("Barrier is better", NOT, swapped(1.0, objective=9.0, network_ratio=2.0)),
    ("Barrier is better", UNTESTABLE, on(GRADIENT)),
]


@pytest.mark.parametrize(("claim", "word", "rows"), CASES)
def test_verdicts(claim, word, rows):
    assert judged(E5, rows, claim).word is word, judged(E5, rows, claim)


def test_every_claim_was_seen_to_hold_to_fail_and_not_to_be_testable():
    seen = all_words(CASES)
    assert all({HOLDS, NOT, UNTESTABLE} <= words for words in seen.values())
    assert len(seen) == len(E5.verdicts([]))


def test_another_network_of_the_same_seed_is_another_instance():
    rows = on("paper") + on("auto", status="optimal") + big_m("time", spread=1.1)
    assert judged(E5, rows, "E5 speed-up of projected gradient").word is UNTESTABLE

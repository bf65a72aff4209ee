"""E4's verdicts: made-up rows in, the right word out."""

import pytest

from dovetail_study.e4 import E4
from dovetail_study.paper import CONVERGENCE, E4_KINDS
from tests.study.made_up import AGREED, HOLDS, IN_PART, NOT, UNTESTABLE, all_words, judged, row, scip


def on(networks=tuple(E4_KINDS), n=200, method="paper", **fields):
    return [row("e4", method, network=network, n=n, **fields) for network in networks]


def as_often_as_the_paper():
    return [
        row("e4", "paper", seed=seed, network=w, n=60, **(AGREED if seed < round(100 * rate) else {}))
        for w, rate in CONVERGENCE.items()
        for seed in range(100)
    ]


def big_m(end, network="lstm"):
    return scip("e4", end, network=network, n=60)


SWAPPED = ("conv1d", "lstm")
CASES = [
    ("E4 accuracy", UNTESTABLE, on(accuracy=0.694)),
    ("E4 no distortion", HOLDS, on()),
    (
        "E4 no distortion",
        NOT,
        on(objective=12.0),
    ),  # two samples that the network itself does not call potable
    ("E4 no distortion", UNTESTABLE, [big_m("refused")]),
    ("E4 convergence", HOLDS, as_often_as_the_paper()),
    ("E4 convergence", NOT, on()),
    ("E4 convergence", UNTESTABLE, on(method="ssg")),
    ("E4 seconds", HOLDS, on(seconds=5.0, **AGREED)),
    ("E4 seconds", HOLDS, on(seconds=5.0) + on(method="auto")),
    ("E4 seconds", IN_PART, on(seconds=5.0)),  # nobody knows what its points are worth
    ("E4 seconds", IN_PART, on(seconds=5.0, potable=6, **AGREED) + on(method="auto")),  # it lost some
    ("E4 seconds", NOT, on(seconds=5.0, best_at=None)),  # fast to where it began
    ("E4 seconds", NOT, on(seconds=100.0, **AGREED)),
    ("E4 seconds", UNTESTABLE, on(n=60)),
    ("E4 big-M cannot write", HOLDS, [big_m("refused"), big_m("refused", "conv1d")]),
    ("E4 big-M cannot write", NOT, [big_m("time")]),
    ("E4 big-M cannot write", UNTESTABLE, [big_m("refused", "2x16")]),
    ("Introduction: CNN and LSTM", HOLDS, on(seconds=40.0, **AGREED)),
    (
        "Introduction: CNN and LSTM",
        IN_PART,
        on(seconds=40.0),
    ),  # it completes, it does not converge, and nobody knows what its points are worth
    ("Introduction: CNN and LSTM", NOT, on(seconds=48.0, **AGREED)),
    ("Introduction: CNN and LSTM", UNTESTABLE, on(("2x16",), seconds=1.0, **AGREED)),
    ("CNN and LSTM reach the same", HOLDS, on()),
    ("CNN and LSTM reach the same", NOT, on(("2x16",)) + on(SWAPPED, potable=14)),
    (
        "CNN and LSTM reach the same",
        IN_PART,  # equal on average only
        on(("2x16",)) + on(SWAPPED, potable=12) + on(("2x16",), seed=7) + on(SWAPPED, seed=7, potable=8),
    ),
    ("CNN and LSTM reach the same", UNTESTABLE, on(SWAPPED)),
]


@pytest.mark.parametrize(("claim", "word", "rows"), CASES)
def test_verdicts(claim, word, rows):
    assert judged(E4, rows, claim).word is word, judged(E4, rows, claim)


def test_every_claim_was_seen_to_hold_to_fail_and_not_to_be_testable():
    seen = all_words(CASES)
    assert seen.pop("E4 accuracy") == {UNTESTABLE}  # the paper's architectures are not published
    assert all({HOLDS, NOT, UNTESTABLE} <= words for words in seen.values())
    assert len(seen) + 1 == len(E4.verdicts([]))

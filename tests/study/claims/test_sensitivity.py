"""Verdicts on rho and step size: made-up rows in, the right word out."""

import pytest

from dovetail_study.sensitivity import SENSITIVITY
from tests.study.made_up import HOLDS, IN_PART, NOT, UNTESTABLE, all_words, judged, row


def cell(rho, step, flipped, method="paper", residual=0.1):
    fields = {"rho": rho, "step": step, "flipped": flipped, "residual": residual}
    return row("sensitivity", method, network="2x16", n=50, **fields)


def apart(rho, step, residual):
    """Nothing is flipped or lost: only u and x end elsewhere."""
    return cell(rho, step, 20, residual=residual)


def over_rho(method, low, high):
    return [cell(1.0, 0.01, low, method), cell(10.0, 0.01, high, method)]


def agreed(rows):
    return [{**each, "stop": "agreed"} for each in rows]


MIDDLE = cell(10.0, 0.01, 20)
CASES = [
    ("Convergence depends", HOLDS, [MIDDLE, apart(1.0, 0.01, 0.01), apart(10.0, 0.1, 0.9)]),
    ("Convergence depends", IN_PART, [MIDDLE, apart(1.0, 0.01, 0.01), apart(10.0, 0.1, 0.1)]),
    ("Convergence depends", NOT, [MIDDLE, cell(1.0, 0.01, 5), cell(10.0, 0.1, 2)]),  # flips are no residual
    ("Convergence depends", UNTESTABLE, [MIDDLE, cell(1.0, 0.01, 5)]),
    ("Raising rho", HOLDS, over_rho("paper", 0, 20) + over_rho("paper-adaptive", 15, 20)),
    ("Raising rho", IN_PART, over_rho("paper", 0, 20) + over_rho("paper-adaptive", 5, 20)),
    (
        "Raising rho",
        NOT,
        over_rho("paper", 0, 20) + agreed(over_rho("paper-adaptive", 0, 20)),
    ),  # agreement is not robustness
    ("Raising rho", NOT, over_rho("paper", 0, 20) + over_rho("paper-adaptive", 0, 20)),
    ("Raising rho", NOT, over_rho("paper", 0, 20) + over_rho("paper-adaptive", 0, 19)),  # one sample
    ("Raising rho", NOT, agreed(over_rho("paper", 0, 20)) + over_rho("paper-adaptive", 0, 20)),
    ("Raising rho", UNTESTABLE, over_rho("paper", 0, 20) + over_rho("paper-balanced", 15, 20)),
]


@pytest.mark.parametrize(("claim", "word", "rows"), CASES)
def test_verdicts(claim, word, rows):
    assert judged(SENSITIVITY, rows, claim).word is word


def test_every_claim_was_seen_to_hold_to_fail_and_not_to_be_testable():
    seen = all_words(CASES)
    assert all({HOLDS, NOT, UNTESTABLE} <= words for words in seen.values())
    assert len(seen) == len(SENSITIVITY.verdicts([]))

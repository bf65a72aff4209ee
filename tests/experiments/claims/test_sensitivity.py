"""Verdicts on rho and step size: made-up rows in, the right word out."""

import pytest

from dovetail.experiments.sensitivity import SENSITIVITY
from tests.experiments.made_up import HOLDS, IN_PART, NOT, UNTESTABLE, all_words, judged, row


def cell(rho, step, flipped, method="paper"):
    return row("sensitivity", method, network="2x16", n=50, rho=rho, step=step, flipped=flipped)


def over_rho(method, low, high):
    return [cell(1.0, 0.01, low, method), cell(10.0, 0.01, high, method)]


MIDDLE = cell(10.0, 0.01, 20)
CASES = [
    ("Convergence depends", HOLDS, [MIDDLE, cell(1.0, 0.01, 5), cell(10.0, 0.1, 2)]),
    ("Convergence depends", IN_PART, [MIDDLE, cell(1.0, 0.01, 5), cell(10.0, 0.1, 20)]),
    ("Convergence depends", NOT, [MIDDLE, cell(1.0, 0.01, 20), cell(10.0, 0.1, 20)]),
    ("Convergence depends", UNTESTABLE, [MIDDLE, cell(1.0, 0.01, 5)]),
    ("Raising rho", HOLDS, over_rho("paper", 0, 20) + over_rho("paper-adaptive", 15, 20)),
    ("Raising rho", IN_PART, over_rho("paper", 0, 20) + over_rho("paper-adaptive", 5, 20)),
    ("Raising rho", NOT, over_rho("paper", 0, 20) + over_rho("paper-adaptive", 0, 20)),
    ("Raising rho", UNTESTABLE, over_rho("paper", 0, 20) + over_rho("paper-balanced", 15, 20)),
]


@pytest.mark.parametrize(("claim", "word", "rows"), CASES)
def test_verdicts(claim, word, rows):
    assert judged(SENSITIVITY, rows, claim).word is word


def test_every_claim_was_seen_to_hold_to_fail_and_not_to_be_testable():
    seen = all_words(CASES)
    assert all({HOLDS, NOT, UNTESTABLE} <= words for words in seen.values())
    assert len(seen) == len(SENSITIVITY.verdicts([]))


def test_the_other_rule_for_rho_is_named_beside_the_papers():
    rows = over_rho("paper", 0, 20) + over_rho("paper-adaptive", 5, 20) + over_rho("paper-balanced", 7, 19)
    assert "paper-balanced 7 to 19" in judged(SENSITIVITY, rows, "Raising rho").ours

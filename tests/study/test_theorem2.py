"""What an iteration costs, of rows that nobody measured."""

import math

from dovetail_study import theory
from tests.study.made_up import HOLDS, row


def steps(network, parameters, **fields):
    return row(
        "theory", "paper", network=network, parameters=parameters, nn_seconds=parameters / 1000, **fields
    )


def test_a_run_without_an_iteration_is_a_dash_and_counts_in_no_verdict():
    rows = [steps("2x16", 100), steps("4x32", 1000), steps("4x64", 5000)]
    late = steps("8x128", 9000, iterations=0)
    (table,) = theory.tables([*rows, late])
    assert table.rows[-1] == ["8x128", "9,000", "–", "–"]
    (verdict,) = theory.verdicts([*rows, late])
    assert verdict.word is HOLDS
    (panel,) = theory.panels([*rows, late])
    assert math.isnan(panel.series["network step"][-1][1])

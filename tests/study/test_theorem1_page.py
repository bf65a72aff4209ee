"""Verdicts on Theorem 1 follow the rows: made-up rows in, the right word out."""

import pytest

from dovetail_study.experiment import Word
from dovetail_study.families import FAMILIES
from dovetail_study.theorem1 import panels, tables, verdicts


def row(family, **fields):
    whole = {
        "family": family.name, "instance": 0, "seed": 42, "L": 1.0, "m": 0.0 if family.convex else 1.0,
        "rho": family.factor, "fall": 1.0, "last_residual": 0.0, "least_residuals": [1.0, 0.0], "unrest": 0.0,
        "last_objective": 1.0, "objective": 1.0, "steps": 9, "dual_rises": 3, "dual_falls": 0,
        "merit_rises": 0, "highest_rise": 0.0, "short_of_repaired": 0, "short_of_proof": 0,
        "short_of_printed": 0, "prices": [1.0, 1.0, 1.0, 1.0], "optimum": 1.0, "points": 9, "kkt": 3,
        "residuals": [1.0, 0.0], "merits": [2.0, 1.0],
    }  # fmt: skip
    return {**whole, **fields}


def word(rows, claim):
    (found,) = [verdict for verdict in verdicts(rows) if verdict.claim.startswith(claim)]
    return found.word


def rows_with(which=lambda family: False, **fields):
    """As the theorem has it, but for some families."""
    return [row(family, **(fields if which(family) else {})) for family in FAMILIES]


def free(family):
    return family.repaired and family.assumed


def limited(family):
    return bool(family.limit)


@pytest.mark.parametrize(
    ("claim", "fields"),
    [
        ("Theorem 1: the iterates", {"prices": [1.0, 2.0, 3.0, 4.0]}),
        ("Theorem 1: every limit", {"last_residual": 0.5}),
        ("Theorem 1: residuals", {"least_residuals": [0.5, 0.5]}),
        ("Theorem 1: the augmented", {"unrest": 1.0}),
    ],
)
def test_one_run_under_the_assumptions_refutes_a_statement(claim, fields):
    assert word(rows_with(), claim) is Word.HOLDS
    assert word(rows_with(limited, **fields), claim) is Word.IN_PART
    assert word(rows_with(free, **fields), claim) is Word.NOT
    assert word(rows_with(lambda family: not family.assumed, **fields), claim) is Word.HOLDS
    assert word([], claim) is Word.UNTESTABLE


def test_the_lemma_is_judged_as_printed():
    claim = "Lemma to Theorem 1"
    assert word(rows_with(), claim) is Word.HOLDS
    assert word(rows_with(limited, merit_rises=1), claim) is Word.IN_PART
    assert word(rows_with(free, short_of_printed=1), claim) is Word.IN_PART
    assert word(rows_with(free, short_of_printed=1, short_of_proof=1), claim) is Word.NOT


@pytest.mark.parametrize(
    "fields",
    [{"merit_rises": 1}, {"short_of_repaired": 1}, {"last_residual": 0.5}, {"prices": [1.0, 2.0, 3.0, 4.0]}],
)
def test_nothing_may_go_against_the_repaired_theorem(fields):
    claim = "Theorem 1 repaired"
    assert word(rows_with(lambda family: not family.repaired, **fields), claim) is Word.HOLDS
    for family in FAMILIES:
        if family.repaired:
            assert word(rows_with(lambda one, bad=family: one is bad, **fields), claim) is Word.NOT


def test_the_dual_step_is_judged_by_its_direction():
    assert word(rows_with(), "Proof of Theorem 1") is Word.NOT
    lowered = rows_with(lambda family: True, dual_rises=0, dual_falls=3)
    assert word(lowered, "Proof of Theorem 1") is Word.HOLDS


def test_every_family_has_a_line_and_a_curve():
    rows = rows_with()
    conclusions, merit = tables(rows)
    names = [family.name for family in FAMILIES]
    assert [line[0] for line in conclusions.rows] == [line[0] for line in merit.rows] == names
    assert all(len(line) == len(table.header) for table in (conclusions, merit) for line in table.rows)
    assert set(names) <= set(panels(rows)[0].series)
    assert tables([]) == panels([]) == []


def test_a_kkt_point_is_held_against_the_enumerated_optimum_where_u_and_x_agreed():
    claim = "Introduction: no loss of optimality"
    assert word(rows_with(), claim) is Word.HOLDS
    assert word(rows_with(limited, last_objective=2.0), claim) is Word.IN_PART
    assert word(rows_with(lambda family: True, last_objective=2.0), claim) is Word.NOT
    assert word(rows_with(limited, last_objective=2.0, last_residual=0.5), claim) is Word.HOLDS
    assert word(rows_with(lambda family: True, last_residual=0.5), claim) is Word.UNTESTABLE

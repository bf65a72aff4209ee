"""The readings of Algorithm 1: each is what its name says, and the table counts what the rows say."""

import dovetail as dt
from dovetail_study.experiment import SEEDS, BenchSettings
from dovetail_study.readings import BY_NAME, CELLS, CHOSEN, EXPERIMENT, OTHER_SEEDS, READINGS


def test_names_and_methods_are_one_to_one():
    assert len(BY_NAME) == len(READINGS) == len({repr(reading.method()) for reading in READINGS})
    assert CHOSEN.name in BY_NAME
    assert CHOSEN.method() == dt.DualDecomposition.paper()
    method = BY_NAME["logit kept best x(k) fixed"].method()
    assert (method.surrogate, method.network_start, method.penalty) == ("logit", "mip", dt.FixedPenalty())
    assert method.nn_solver == dt.ProjectedGradient(
        steps=25, lr=0.01, decay=False, keep_best=True, state="kept"
    )


def test_a_reading_is_chosen_on_other_seeds_than_it_is_judged_on():
    assert not set(OTHER_SEEDS) & set(SEEDS)
    assert {run.seed for run in EXPERIMENT.runs(BenchSettings())} == set(OTHER_SEEDS)


def test_the_table_has_shares_and_agreement():
    cell = {"experiment": "readings", "seed": 7, "found": True, **CELLS["E1 and E3, budgets total"][0]}
    rows = [
        {**cell, "method": "auto", "potable": 20, "status": "optimal", "stop": "proved"},
        {**cell, "method": CHOSEN.name, "potable": 15, "status": "feasible", "stop": "agreed"},
    ]
    ((line, reference),) = [table.rows for table in EXPERIMENT.tables(rows)]
    assert line[:3] == [CHOSEN.name, "1", "0.75, 1 of 1 converged"]
    assert set(line[3:]) == {"\u2013"}
    assert reference[:3] == ["auto", "1", "1, 1 of 1 converged"]

"""What a result keeps of its problem: limits, ties, classes before; files bring it back, or are refused."""

import json

import numpy as np
import pytest

import dovetail as dt
from dovetail.run.problem_facts import ProblemFacts


def treatment(predictor):
    """x = w + up: two samples of one input."""
    A = [[1, 0, 0, 0, -1, 0], [0, 1, 0, 0, 0, -1]]
    mip = dt.Mip(
        [0, 0, -1, -1, 1, 1],
        A,
        [0.2, 0.7],
        [0.2, 0.7],
        [-np.inf, -np.inf, 0, 0, 0, 0],
        [np.inf] * 2 + [1.0] * 4,
    )
    problem = dt.Problem(mip)
    problem.add_predictor(
        predictor, [[0], [1]], [[2], [3]], output_type="classification", threshold=0.5, name="judge"
    )
    return problem


def test_limits_ties_and_classes_before():
    facts = ProblemFacts.of(treatment(lambda X: X))
    assert facts.sense == "min" and facts.n_rows == 2
    assert np.flatnonzero(facts.read).tolist() == [0, 1]
    assert np.flatnonzero(facts.written).tolist() == [2, 3]
    (block,) = facts.blocks
    assert block.classifies and block.samples == 2
    assert np.allclose(block.untouched.values, [[0.2], [0.7]])
    assert block.untouched.classes.tolist() == [[0.0], [1.0]]


def test_a_file_brings_everything_back():
    facts = ProblemFacts.of(treatment(lambda X: X), ask=False)
    record = json.loads(json.dumps(facts.to_record(), allow_nan=True))
    again = ProblemFacts.from_record(record, 6)
    assert json.dumps(again.to_record()) == json.dumps(facts.to_record())
    assert again.upper.tolist() == facts.upper.tolist()
    assert np.isnan(again.blocks[0].untouched.classes).all()


def test_predictors_that_fail_afterwards_cost_nothing():
    calls = []

    def unsteady(X):
        calls.append(len(X))
        if len(calls) > before:
            raise RuntimeError("gone")
        return X

    before = 1000
    problem = treatment(unsteady)
    before = 0
    assert np.isnan(ProblemFacts.of(problem).blocks[0].untouched.classes).all()


@pytest.mark.parametrize(
    "harm",
    [
        lambda record: record.update(sense="up"),
        lambda record: record.update(lower=[[0.0, 5]]),
        lambda record: record.update(lower=[["none", 6]]),
        lambda record: record["blocks"][0].update(name=3),
        lambda record: record["blocks"][0]["untouched"].update(inputs=[[0], [99]]),
        lambda record: record["blocks"][0]["untouched"].update(values=[[0.0]]),
        lambda record: record.update(blocks=[[]]),
        lambda record: record.update(lower=[[0.0, 10], [0.0, -4]]),
        lambda record: record.update(read=[[0, 10**12]]),
    ],
)
def test_files_that_were_tampered_with_are_refused(harm):
    record = ProblemFacts.of(treatment(lambda X: X)).to_record()
    harm(record)
    with pytest.raises((ValueError, TypeError, KeyError)):  # what `Result.from_json` turns into its own
        ProblemFacts.from_record(record, 6)


def test_facts_of_another_number_of_columns():
    record = ProblemFacts.of(treatment(lambda X: X)).to_record()
    with pytest.raises(ValueError, match="limits of 6 columns, where there are 5"):
        ProblemFacts.from_record(record, 5)
    enormous = {name: [[0.0, 10**15]] for name in ("lower", "upper", "integer", "read", "written")}
    with pytest.raises(ValueError, match="limits of"):
        ProblemFacts.from_record({**record, **enormous}, None)

"""What is allowed for a predictor's own rounding: next to nothing in float64, what was seen in float32.

What a predictor says of many samples, piece by piece as in one.

The largest amount and its place, in one piece or in many.
"""

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.core import batch_rounding as module
from dovetail.core.batch_rounding import (
    DOUBLE,
    MANY,
    MOST_NEAR,
    NOTHING,
    BlockAnswers,
    Worst,
    alone,
    batch_rounding,
    double_copy,
    largest,
    nearby,
    rows_nearby,
    worst_in_pieces,
    worst_of,
)
from dovetail.core.pieces import NUMBERS
from tests.small import random_mlp

INPUTS = np.random.default_rng(0).uniform(-1.0, 1.0, (5, 3))


def block_of(dtype):
    problem = dt.Problem(dt.Mip(np.zeros(20), lower=-1.0, upper=1.0))
    net = random_mlp(3, width=32, dtype=dtype)
    return problem.add_predictor(net, np.arange(15).reshape(5, 3), 15 + np.arange(5)[:, None])


def test_float64_is_allowed_a_few_roundings_without_a_look():
    block = block_of(torch.float64)
    values = block.predictor.predict(INPUTS)
    assert double_copy(block.predictor, block.description) is None
    assert not nearby(block, rows_nearby(block, INPUTS), None).any()
    allowed = batch_rounding(block, values, np.zeros_like(values), [])
    assert np.all(allowed <= DOUBLE * np.maximum(1.0, np.abs(values).max()))


def test_float32_is_allowed_more_than_what_was_seen():
    block = block_of(torch.float32)
    copy = double_copy(block.predictor, block.description)
    values = block.predictor.predict(INPUTS)
    rows = rows_nearby(block, INPUTS)
    near = nearby(block, rows, copy(rows))
    assert 0.0 < near.max() < 1e-4
    seen = np.maximum(near, np.abs(copy(INPUTS) - values))
    assert np.all(
        batch_rounding(block, values, near, [copy(INPUTS)]) >= 2.0 * seen
    )  # another machine may err to the other side


def test_rows_that_nobody_asks_for_stay_unknown():
    block = block_of(torch.float32)
    which = np.array([True, False, True, False, False])
    said = alone(block, INPUTS, which, block.predictor.predict(INPUTS))
    assert np.isnan(said[~which]).all()
    assert np.abs(said[which] - block.predictor.predict(INPUTS)[which]).max() < 1e-4


def test_a_copy_is_asked_in_parts(monkeypatch):
    """The same rows, however many go in at once, and none at all."""
    block = block_of(torch.float32)
    copy = double_copy(block.predictor, block.description)
    whole = copy(INPUTS)
    monkeypatch.setattr(module, "COPY_ROWS", 2)
    np.testing.assert_allclose(copy(INPUTS), whole, rtol=1e-12)
    assert copy(INPUTS[:0]).shape == (0, 1)


@pytest.mark.parametrize("numbers", [NUMBERS, 1000])
@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_of_many_rows_the_least_decided_are_asked_alone(kind, numbers, monkeypatch):
    monkeypatch.setattr("dovetail.core.pieces.NUMBERS", numbers)
    monkeypatch.setattr(module, "SECONDS", np.inf)
    n = MANY + 50
    problem = dt.Problem(dt.Mip(cost=np.zeros(2 * n), lower=-1.0, upper=1.0))
    columns = np.arange(2 * n).reshape(n, 2)
    net = torch.nn.Linear(1, 1)
    block = problem.add_predictor(net, columns[:, :1], columns[:, 1:], output_type=kind)
    inputs = np.random.default_rng(0).uniform(-1.0, 1.0, (n, 1))
    values = block.predictor.predict(inputs)
    said = alone(block, inputs, np.ones(n, dtype=bool), values)
    asked = np.flatnonzero(~np.isnan(said[:, 0]))
    assert asked.size == MOST_NEAR
    if kind == "classification":
        assert np.array_equal(asked, np.sort(np.argsort(np.abs(values[:, 0]))[:MOST_NEAR]))


KINDS = ("prediction", "precision", "turning")


@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_pieces_change_nothing(kind, monkeypatch):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    problem = dt.Problem(dt.Mip(cost=np.zeros(90), lower=-1.0, upper=1.0))
    columns = np.arange(90).reshape(30, 3)
    block = problem.add_predictor(net, columns[:, :2], columns[:, 2:], output_type=kind)
    x = np.random.default_rng(0).uniform(-1.0, 1.0, 90)
    copy = double_copy(block.predictor, block.description)

    def found():
        said = BlockAnswers(block, copy, x, None, one_by_one=True)
        return [getattr(said, name) for name in KINDS], said.batch_rounding

    whole, rounding = found()
    monkeypatch.setattr("dovetail.core.pieces.NUMBERS", 7)
    pieces, other = found()
    assert pieces == whole
    assert np.array_equal(rounding, other)
    assert whole[0].amount > 0.1
    assert 0.0 < whole[1].amount < 1e-5


@pytest.mark.parametrize("numbers", [NUMBERS, 4])
def test_places_are_counted_through(numbers, monkeypatch):
    monkeypatch.setattr("dovetail.core.pieces.NUMBERS", numbers)
    amounts = np.random.default_rng(0).uniform(-1.0, 1.0, (50, 3))
    place = int(np.argmax(amounts))
    expected = Worst(float(amounts.flat[place]), f"place {place}")
    assert worst_in_pieces(lambda some: amounts[some], (50, 3), lambda k: f"place {k}") == expected
    assert worst_of(amounts.ravel(), lambda k: f"place {k}") == expected
    amounts[41, 1] = np.nan
    assert worst_of(amounts.ravel(), str) == Worst(np.inf, str(41 * 3 + 1))


def test_less_than_nothing_is_nothing():
    assert worst_of(np.array([-1.0, 0.0]), str) == NOTHING
    assert worst_of(np.empty(0), str) == NOTHING


def test_what_could_not_be_measured_comes_first():
    unknown = Worst(float("nan"), "unknown")
    assert largest([Worst(1.0, "one"), unknown]) is unknown
    assert largest([Worst(1.0, "one"), Worst(2.0, "two")]).name == "two"
    assert largest([]) == NOTHING

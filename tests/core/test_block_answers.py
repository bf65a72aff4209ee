"""What a predictor says of many samples, piece by piece as in one."""

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.core.batch_rounding import BlockAnswers, double_copy

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

"""Splits of boxes: every one of them decides something."""

import math

import pytest
import torch

from dovetail.branching.planes.splitting import split

INTEGER = torch.tensor([True, False])


@pytest.mark.parametrize("score", [3.0, math.inf, math.nan])
def test_a_column_that_is_a_point_is_not_chosen_again(score):
    """An infinite score stays infinite when it is halved, and one half of a decided integer is empty."""
    lower, upper = torch.tensor([[0.0, 0.0]]), torch.tensor([[1.0, 1.0]])
    scores = torch.tensor([[score, 1.0]])
    lower, upper, scores = split(lower, upper, scores, INTEGER)
    assert lower[:, 0].tolist() == upper[:, 0].tolist() == [0.0, 1.0]
    assert scores.tolist() == [[0.0, 1.0], [0.0, 1.0]]
    lower, upper, scores = split(lower, upper, scores, INTEGER)
    assert upper[:, 1].tolist() == [0.5, 0.5, 1.0, 1.0]
    assert scores[:, 1].tolist() == [0.5] * 4

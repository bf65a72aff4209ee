"""By how much an indicator's row is missed while it is switched on."""

import numpy as np
import pytest
import torch

from dovetail.core.special_constraints import Indicator
from dovetail.reformulations.indicators import IndicatorViolation


@pytest.mark.parametrize("active", [0, 1])
@pytest.mark.parametrize(("lower", "upper"), [(-np.inf, 2.0), (1.0, np.inf), (1.0, 2.0), (2.0, 2.0)])
def test_what_is_missing(active, lower, upper):
    block = IndicatorViolation(Indicator(0, active, [1, 2], [1.0, -2.0], lower, upper, "c"))
    rows = np.array([[on, x, y] for on in (0.0, 1.0) for x in (0.0, 4.0, 7.0) for y in (-1.0, 1.0, 3.0)])
    activity = rows[:, 1] - 2.0 * rows[:, 2]
    missing = np.maximum(np.maximum(lower - activity, activity - upper), 0.0)
    wanted = np.where(rows[:, 0] == active, missing, 0.0)
    assert block(torch.as_tensor(rows)).numpy()[:, 0].tolist() == wanted.tolist()

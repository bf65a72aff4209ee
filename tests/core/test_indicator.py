"""An indicator that means nothing cannot be made."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.core.special_constraints import Indicator


@pytest.mark.parametrize(
    ("active", "lower", "upper"),
    [(2, 0.0, 1.0), (1, -np.inf, np.nan), (1, np.nan, 0.0), (1, -np.inf, -np.inf), (0, np.inf, np.inf)],
)
def test_refuses_nonsense(active, lower, upper):
    with pytest.raises(dt.ModelError, match="constraint c"):
        Indicator(0, active, [1], [1.0], lower, upper, "c")


@pytest.mark.parametrize("active", [0, 1, True, False])
def test_one_side_or_none_is_enough(active):
    assert Indicator(0, active, [1], [1.0], -np.inf, np.inf, "c").active == active

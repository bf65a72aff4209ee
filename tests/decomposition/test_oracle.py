"""One step of pricing against a linear program solved by scipy."""

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

from dovetail.decomposition.descent_rows import DescentState
from dovetail.decomposition.oracle import _cheapest


@pytest.mark.parametrize("seed", range(20))
def test_the_closed_form_is_the_linear_program(seed):
    """Two-sided costs, one condition: the same value, and the condition met, where it can be."""
    rng = np.random.default_rng(seed)
    n, k = 5, 4
    low, high = -rng.random((n, k)) * 2, rng.random((n, k)) * 2
    right, left = rng.random((n, k)), rng.random((n, k))
    if seed % 2:  # linear costs, of both signs
        right = rng.normal(size=(n, k))
        left = -right
    gain, short = rng.normal(size=(n, k)), rng.normal(size=n)
    now = rng.uniform(low, high)
    tensors = [torch.as_tensor(a) for a in (now, gain, short)]
    nothing = torch.zeros(n, dtype=torch.float64)
    state = DescentState(tensors[0], tensors[0], nothing, nothing, nothing, tensors[2], tensors[1], None)
    found = _cheapest(*(torch.as_tensor(a) for a in (low, high, right, left)), state).numpy()
    assert np.all(found >= low - 1e-12)
    assert np.all(found <= high + 1e-12)
    for i in range(n):
        need = short[i] + gain[i] @ now[i]
        most = np.sum(np.maximum(gain[i] * low[i], gain[i] * high[i]))
        answer = linprog(
            np.concatenate([right[i], left[i]]),
            A_ub=[np.concatenate([-gain[i], gain[i]])],
            b_ub=[-min(need, most)],
            bounds=[
                (max(a, 0.0), b) if not seed % 2 else (0.0, b) for a, b in zip(low[i], high[i], strict=True)
            ]
            + [(0.0, -a) for a in low[i]],
        )
        value = right[i] @ np.maximum(found[i], 0) + left[i] @ np.maximum(-found[i], 0)
        assert gain[i] @ found[i] >= min(need, most) - 1e-9
        assert value == pytest.approx(answer.fun, abs=1e-8)

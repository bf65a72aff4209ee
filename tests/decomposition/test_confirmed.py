"""A class that is another one alone or in float64 is none to build on: a point with it is refused."""

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.decomposition import TemplatePricing

TINY = 1e-7


class Undecided(torch.nn.Module):
    """The first input is the logit; next to 0 its sign depends on the batch, or on the format."""

    def __init__(self, by: str) -> None:
        super().__init__()
        self.one, self.by = torch.nn.Parameter(torch.ones(1)), by

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logit = self.one * x[:, :1]
        turned = len(x) == 1 if self.by == "batch" else x.dtype == torch.float64
        other = logit - 2.0 * logit.detach()  # the slope is the same
        return torch.where(logit.abs() < 10 * TINY, other, logit) if turned else logit


@pytest.mark.parametrize("by", ["batch", "format"])
def test_a_block_between_two_classes_is_moved_to_one(by):
    n = 60
    w = np.random.default_rng(0).uniform(-1.0, -0.2, (n, 1))
    w[7] = TINY
    problem = dt.Problem(sense="max")
    made = problem.add_template(
        n,
        {
            "good": dt.Family(upper=1.0, cost=1.0, integer=True),
            "x": dt.Family(lower=-np.inf),
            "up": dt.Family(),
            "down": dt.Family(),
        },
        rows=[dt.FamilyRow({"x": 1.0, "up": -1.0, "down": 1.0}, w, w)],
        coupling=[dt.FamilyRow({"up": 1.0}, upper=2.0), dt.FamilyRow({"down": 1.0}, upper=2.0)],
    )
    problem.add_predictor(Undecided(by), made["x"], made["good"], output_type="classification", threshold=0.0)
    result = dt.solve(problem, TemplatePricing(rounds=3), time_limit=60.0, log=False)
    assert result.x is not None
    assert dt.check(problem, result.x).within()
    assert abs(result.value(made["x"])[7, 0]) > 10 * TINY

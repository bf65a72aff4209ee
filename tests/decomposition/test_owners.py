"""A class that is another one alone or in float64 is none to build on: a point with it is refused."""

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.decomposition import TemplatePricing
from dovetail.decomposition.owners import Owners
from dovetail.decomposition.plan import plan_of
from dovetail.structure.structure import Structure
from tests.decomposition.families import blends, sales
from tests.structure.test_templates import treated

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


@pytest.mark.parametrize("problem", [treated(60), blends(60), sales(60)], ids=["classes", "floors", "prices"])
def test_outputs_and_columns_are_the_hosts_own(problem):
    """A point is as the problem completes it, and no claim stands that is not confirmed."""
    (program,), blocks = plan_of(Structure(problem)).programs, list(problem.blocks)
    (places,) = (template.places for template in plan_of(Structure(problem)).arrays)
    owners, rng = Owners(program, blocks, "cpu"), np.random.default_rng(0)
    assert not owners.here
    moves = torch.as_tensor(rng.uniform(np.maximum(program.lower, -1.0), np.minimum(program.upper, 1.0)))
    everyone = torch.arange(program.count)
    _, outputs = owners.confirmed(everyone, moves, None)
    z = torch.zeros(problem.mip.n_columns, dtype=torch.float64)
    owners.write(moves, outputs, z, places, 0)
    np.testing.assert_allclose(problem.predict(z.numpy().copy()), z.numpy(), rtol=1e-5, atol=1e-6)
    (classes,) = {block.classifies for block in blocks}
    assert not classes or not bool(owners.confirmed(everyone, moves, 1.0 - outputs)[0].any())

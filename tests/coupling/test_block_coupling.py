"""One block's coupling: what it adds to the MIP step, its multipliers, its Lagrangian."""

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.coupling.assemble import network_block
from dovetail.coupling.augmented_lagrangian import BlockCoupling, mip_objective
from dovetail.coupling.split import split
from dovetail.run.budget import Budget
from dovetail.run.network_step import NetworkAnswer
from dovetail.run.work import Stopwatch
from tests.small import bowl, knapsack, linear_net


def coupled(problem, scaled=False, unit=1.0):
    cut = split(problem)
    width = np.where(np.isfinite(problem.mip.upper), problem.mip.upper - problem.mip.lower, 1.0)
    couplings = []
    for part in cut.parts:
        d = part.block.inputs.shape[1]
        points = np.random.default_rng(0).uniform(-1, 1, (32, d))
        network = network_block(
            part,
            problem.mip.lower,
            problem.mip.upper,
            width if scaled else np.ones_like(width),
            {part.name: points},
            None,
            Stopwatch(),
        )
        couplings.append(
            BlockCoupling(
                part, network, problem.mip.minimised().cost, width[part.block.inputs], unit, scaled=scaled
            )
        )
    return cut, couplings


def shared_column():
    """One column is an input of two samples and its output is coupled to a third column."""
    mip = dt.Mip(
        cost=[1.0, 0.0, 2.0, 0.0],
        A=[[0.0, 1.0, 1.0, 0.0]],
        row_lower=[0.0],
        row_upper=[5.0],
        lower=-2.0,
        upper=2.0,
    )
    problem = dt.Problem(mip)
    problem.add_predictor(linear_net([3.0]), [[0]], [[1]], name="p")
    problem.add_predictor(linear_net([-1.0]), [[0]], [[3]], name="q")
    return problem


@pytest.mark.parametrize("make", [bowl, knapsack, shared_column])
@pytest.mark.parametrize("scaled", [False, True])
def test_the_mip_step_minimises_the_lagrangian(make, scaled):
    """Its objective differs from the augmented Lagrangian by a constant in x: checked at random points."""
    problem = make()
    cut, couplings = coupled(problem, scaled, unit=0.7)
    rng = np.random.default_rng(0)
    n = problem.mip.n_columns
    for coupling in couplings:
        coupling.begin(rng.uniform(-1, 1, n))
        coupling.multiplier[:] = rng.normal(size=coupling.multiplier.shape)
        if coupling.couples_outputs:
            coupling.output_multiplier[:] = rng.normal(size=coupling.output_multiplier.shape)
    goal = mip_objective(cut.mip, couplings, 3.0)
    differences = []
    for _ in range(6):
        x = rng.uniform(-1, 1, n)
        for coupling in couplings:
            coupling._x, coupling._y = x[coupling.columns], x[coupling.outputs]
        lagrangian = (
            cut.mip.cost @ x + cut.mip.offset + sum(coupling.lagrangian(3.0) for coupling in couplings)
        )
        differences.append(goal.value(x) - lagrangian)
    assert np.ptp(differences) < 1e-9


def test_the_dual_step_raises_the_merit_by_the_weighted_square():
    """The paper's proof has it fall; by its own definition it rises by |u - x|_W^2."""
    problem = bowl()
    _, (coupling,) = coupled(problem)
    coupling.begin(np.zeros(3))
    coupling.network_step(np.array([0.7, 0.3, 0.0]), 5.0, dt.ProjectedGradient(), Budget(), "better")
    before = coupling.lagrangian(5.0)
    apart = coupling.u - np.array([[0.7, 0.3]])
    coupling.update_multipliers(5.0, None)
    assert coupling.lagrangian(5.0) - before == pytest.approx(5.0 * float((apart**2).sum()))


def test_the_better_start_is_taken_sample_by_sample():
    problem = bowl((0.5, -0.25))
    _, (coupling,) = coupled(problem)
    coupling.begin(np.array([2.0, 2.0, 0.0]))  # far from the minimum; the MIP's point is near it
    x = np.array([0.5, -0.25, 0.0])
    coupling.network_step(x, 1.0, dt.ProjectedGradient(steps=1, lr=1e-9), Budget(), "better")
    assert coupling.u == pytest.approx(np.array([[0.5, -0.25]]), abs=1e-6)


def test_a_network_step_may_start_at_the_mips_point():
    _, (coupling,) = coupled(bowl((0.5, -0.25)))
    coupling.begin(np.array([0.5, -0.25, 0.0]))  # the copies are the better start
    coupling.network_step(np.array([1.0, 1.0, 0.0]), 1.0, Still(), Budget(), "mip")
    assert coupling.u.tolist() == [[1.0, 1.0]]
    coupling.begin(np.array([0.5, -0.25, 0.0]))
    coupling.network_step(np.array([1.0, 1.0, 0.0]), 1.0, Still(), Budget(), "copies")
    assert coupling.u.tolist() == [[0.5, -0.25]]


class Still:
    """A sub-solver that stays where it starts."""

    def refuses(self, block):
        return None

    def solve(self, block, terms, start, budget):
        values = block.values(start)
        nothing = torch.zeros(len(start))
        return NetworkAnswer(start, values, nothing, nothing)

"""Planes of one network after the other: the rows of the whole, whatever the order."""

import numpy as np
import torch

from dovetail.branching.planes.plan import Plan, input_plan
from dovetail.branching.planes.relaxation import Relaxation
from dovetail.branching.planes.stages import Stages
from dovetail_study.problems.function import formulate
from tests.branching.planes.test_method import two_networks
from tests.contexts import context_of


def staged(instance):
    plan = input_plan(context_of(instance.problem))
    assert isinstance(plan, Plan)
    whole = Relaxation(plan.mip, plan.network, plan.lower, plan.upper, "cpu")
    return whole, Stages(plan, whole, "cpu")


def test_both_stages_give_the_rows_of_the_whole():
    whole, stages = staged(two_networks(seed=1))
    assert stages.several
    lower, upper = (bound.repeat(5, 1) for bound in (whole.root_lower, whole.root_upper))
    lower[:, 0] = torch.linspace(-4.0, 3.0, 5, dtype=torch.float64)
    at_once, after = whole.relaxed(lower, upper), stages.completed(stages.first.relaxed(lower, upper))
    for name in ("rows", "row_lower", "row_upper"):
        one, other = getattr(at_once.programs, name), getattr(after.programs, name)
        assert torch.allclose(one, other, rtol=1e-9, atol=1e-9), name
    assert torch.allclose(at_once.apart.slopes, after.apart.slopes, rtol=1e-9, atol=1e-9)
    width = (upper - lower)[:, whole.inputs]
    assert torch.allclose(at_once.bends(width), after.bends(width), rtol=1e-9, atol=1e-9)


def test_planes_of_the_first_stage_are_of_what_costs():
    instance = two_networks(seed=2)
    whole, stages = staged(instance)
    assert set(stages.first.column.tolist()) == {int(instance.outputs[0])}
    points = torch.as_tensor(np.random.default_rng(0).uniform(-4.0, 4.0, (300, 3)))
    value = instance.networks[0](points)[:, 0].detach()
    relaxed = stages.first.relaxed(whole.root_lower[None], whole.root_upper[None]).programs
    z = torch.zeros(300, whole.n_columns, dtype=torch.float64)
    z[:, :3], z[:, int(instance.outputs[0])] = points, value
    assert bool((z @ relaxed.rows[0].T >= relaxed.row_lower[0] - 1e-9).all())


def test_smooth_networks_that_cost_wait_for_slopes_of_the_others():
    """A part without slopes is not asked alone where others have some: nobody would choose them."""
    rectified, smooth = two_networks(seed=3), two_networks(seed=3, activation=torch.nn.Tanh)
    pair = [smooth.networks[0], rectified.networks[1]]
    whole, stages = staged(formulate(3, 4.0, pair, [], rectified.median))
    assert not stages.several and stages.first is whole

"""The bundle: cuts that are near or touch, on the side that binds."""

import numpy as np

import dovetail as dt
from dovetail.linearised.descent import Bundle
from dovetail.linearised.scaled_problem import ScaledProblem
from tests.contexts import context_of
from tests.linearised.test_descent import lowest_of, roof


def at(cut, x):
    """What a cut says of a single input."""
    return cut.linearisation.offset[0] + cut.linearisation.slopes[0] * x


def test_cuts_are_near_and_on_the_right_side():
    problem, _, _ = roof(2, dimension=1, planes=3)
    context = context_of(problem)
    scaled = ScaledProblem.of(context)
    bundle = Bundle(scaled, 3)
    rng = np.random.default_rng(0)
    here = np.array([0.1, 0.0])
    model = scaled.networks.linearise(here)
    assert bundle.cuts(here, model, np.array([-1.0]), 1.0) == ()
    for x in rng.uniform(-2, 2, 5):
        bundle.add(np.array([x, 0.0]), scaled.networks.linearise(np.array([x, 0.0])))
    assert len(bundle) == 3  # the oldest are forgotten
    for cut in bundle.cuts(here, model, np.array([-1.0]), 1.0):
        assert cut.outputs.tolist() == [True]  # concave: every tangent lies above
        assert at(cut, 0.1) >= model.values[0] - 1e-9
    for cut in bundle.cuts(here, model, np.array([1.0]), 1.0):
        touching = abs(at(cut, 0.1) - model.values[0]) < 1e-9
        assert cut.outputs.tolist() == [touching]
    for cut in bundle.cuts(here, model, np.array([-1.0]), 1e-9):  # none is near, but one may be of this piece
        touching = abs(at(cut, 0.1) - model.values[0]) < 1e-9
        assert cut.outputs.tolist() == [touching]


def test_pieces_that_meet_here_are_remembered_however_small_the_radius():
    """At a kink of min(x, -x) both sides count: a step that forgets one of them runs down it for ever."""
    problem = dt.Problem(dt.Mip(cost=[0.0, 1.0], lower=[-1.0, -np.inf], upper=[1.0, np.inf], sense="max"))
    problem.add_predictor(lowest_of(np.array([[1.0], [-1.0]]), np.zeros(2)), [0], [1])
    scaled = ScaledProblem.of(context_of(problem))
    bundle = Bundle(scaled, 2)
    for x in (-0.5, 0.5):
        bundle.add(np.array([x, 0.0]), scaled.networks.linearise(np.array([x, 0.0])))
    here = np.zeros(2)
    cuts = bundle.cuts(here, scaled.networks.linearise(here), np.array([-1.0]), 1e-6)
    assert [cut.outputs.tolist() for cut in cuts] == [[True], [True]]

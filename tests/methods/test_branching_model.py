"""Tightening under a cutoff: no point up to it is lost, and nothing is proved that is not so."""

import numpy as np
import pytest

from dovetail.branching.root import NothingLeft
from dovetail.methods.branching_model import tightened
from dovetail.methods.exact_mip import ExactMip
from dovetail.mip.highs import HighsEngine
from dovetail.reformulations.reformulated import Reformulated
from dovetail.reformulations.relu_big_m import written_out
from dovetail.run.budget import Budget
from dovetail.run.engine import Quadratic
from dovetail.structure.relu_layers import relu_layers
from dovetail.structure.structure import structure_of
from tests.conftest import FULL, sample
from tests.contexts import best_of, breach, by_scipy, choices, context_of
from tests.reformulations.test_relu_big_m import KINDS

SEEDS = range(40 if FULL else 1)
LOWER, UPPER = [-2.0, -1.0], [2.0, 3.0]


def tightening(problem, cutoff):
    """The networks below a cutoff, before and after, and the problem that they are written into."""
    context = context_of(problem)
    box = context.once(structure_of).tight_box
    layers = relu_layers(problem, box)
    after = tightened(problem, layers, box, cutoff, context, Budget(60.0))
    return layers, after, Reformulated.start(problem, box)


def costs(problem, points):
    mip = problem.mip
    kept = np.array([x for x in points if breach(mip, x) <= 1e-9])
    return kept, np.array([mip.sign * mip.objective(x) for x in kept])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("seed", SEEDS)
def test_every_point_up_to_the_cutoff_stays(kind, seed):
    problem = kind(LOWER, UPPER, True, seed, 1 + seed % 3)
    points, values = costs(problem, choices(problem))
    least = values.min()
    for above in (1e-6, 0.3, 2.0):
        _, after, given = tightening(problem, least + above)  # NothingLeft would be wrong
        written = written_out(after, given)
        for x in points[values <= least + above]:
            z = written.lift(x)
            assert breach(written.problem.mip, z) <= 1e-6
        mip, nothing = written.problem.mip.minimised(), np.empty(0, dtype=np.int64)
        goal = Quadratic.linear(mip.cost, mip.offset)
        answer = HighsEngine().load(mip, nothing).solve(goal, budget=Budget(60.0), gap=1e-9)
        assert answer.value == pytest.approx(least, abs=1e-5)
        objective, _ = by_scipy(written.problem.mip)  # other tolerances than ours
        assert problem.mip.sign * objective == pytest.approx(least, abs=1e-5)


@pytest.mark.parametrize("kind", KINDS[:1], ids=lambda kind: kind.__name__)
def test_far_below_the_optimum_nothing_is_left(kind):
    problem = kind(LOWER, UPPER, True, 0, 1)
    _, values = costs(problem, choices(problem))
    with pytest.raises(NothingLeft):
        tightening(problem, values.min() - 100.0)


def test_it_fixes_neurons():
    fewer = 0
    for seed in SEEDS:
        problem = KINDS[0](LOWER, UPPER, False, seed, 2)
        context = context_of(problem)
        ExactMip().solve(context)
        cutoff = problem.mip.sign * context.incumbent.objective + 1e-6
        before, after, _ = tightening(problem, cutoff)
        fewer += after.unstable < before.unstable
    assert fewer


@pytest.mark.parametrize("kind", sample(KINDS, 2), ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_poor_point_is_never_proved(kind, seed):
    """The bound is the optimum's, whatever point the proof begins with."""
    problem = kind(LOWER, UPPER, True, seed + 50, 1 + seed % 3)
    points, values = costs(problem, choices(problem))
    truth = best_of(problem, points)[0]
    for place in (0, values.size // 2):
        context = context_of(problem)
        context.incumbent.offer(points[np.argsort(values)[place]], "given")
        ExactMip().solve(context)
        slack = 1e-6 * (1.0 + abs(truth))
        assert context.incumbent.bound <= problem.mip.sign * truth + slack
        assert context.incumbent.objective == pytest.approx(truth, abs=1e-5)
        assert context.incumbent.bound >= problem.mip.sign * truth - 1e-3 * (1.0 + abs(truth))

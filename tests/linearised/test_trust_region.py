"""The subproblem: against linprog on a problem put together by hand, and against itself built afresh."""

import numpy as np
import pytest
from scipy.optimize import linprog
from torch import nn

import dovetail as dt
from dovetail.linearised.scaled_problem import ScaledProblem
from dovetail.linearised.trust_region import BundleCut, TrustRegionSubproblem
from dovetail.run.budget import Budget
from dovetail.run.work import Stopwatch
from tests.contexts import by_scipy, context_of
from tests.small import linear_net, random_mlp


def blending(sense="min", weights=((1.0, -2.0, 0.5), (0.3, 1.0, -1.0))):
    """Three inputs under two rows, two linear outputs with limits, all of it with cost."""
    rng = np.random.default_rng(0)
    mip = dt.Mip(
        cost=rng.normal(size=5),
        A=[[1.0, 1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0, -1.0]],
        row_lower=[-np.inf, -1.0],
        row_upper=[1.0, 1.0],
        lower=[-2.0, -2.0, -2.0, -1.5, -np.inf],
        upper=[2.0, 2.0, 2.0, np.inf, 1.5],
        sense=sense,
    )
    problem = dt.Problem(mip)
    problem.add_predictor(linear_net(weights, [0.25, -0.5]), [0, 1, 2], [3, 4])
    return problem


def mixed():
    """ReLU regressions and classes over shared inputs, with a coupling row."""
    rng = np.random.default_rng(1)
    mip = dt.Mip(
        cost=rng.normal(size=9),
        A=[[1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0, 0, 0, 1.0, 1.0, 2.0, 0, 0, 0]],
        row_lower=[-1.0, -np.inf],
        row_upper=[1.0, 3.0],
        lower=[-1.0, -1.0, -1.0, -9.0, -9.0, 0.0, 0.0, 0.0, 0.0],
        upper=[1.0, 1.0, 1.0, 9.0, 9.0, 1.0, 1.0, 1.0, 1.0],
    )
    problem = dt.Problem(mip)
    problem.add_predictor(random_mlp(2, seed=1), [[0, 1], [1, 2]], [[3], [4]])
    problem.add_predictor(random_mlp(3, seed=10), [0, 1, 2], [5], output_type="classification")
    problem.add_predictor(random_mlp(2, 3, seed=3), [0, 2], [6, 7, 8], output_type="classification")
    return problem


def scaled_of(problem):
    return ScaledProblem.of(context_of(problem))


def program_for(scaled, **options):
    return TrustRegionSubproblem(scaled, Stopwatch(), **{"integer": False, **options})


def step_at(program, scaled, z, *, radius=None, penalty=None, **options):
    lower, upper = scaled.host.lower.copy(), scaled.host.upper.copy()
    if radius is not None:
        j = scaled.inputs
        lower[j], upper[j] = np.maximum(lower[j], z[j] - radius), np.minimum(upper[j], z[j] + radius)
    return program.solve(
        scaled.host.cost,
        lower,
        upper,
        scaled.networks.linearise(z),
        scaled.penalty if penalty is None else penalty,
        budget=Budget(10.0),
        **options,
    )


@pytest.mark.parametrize("sense", ["min", "max"])
def test_with_a_linear_network_the_step_is_the_problem(sense):
    problem = blending(sense)
    scaled, mip = scaled_of(problem), problem.mip
    weights, bias = np.array([[1.0, -2.0, 0.5], [0.3, 1.0, -1.0]]), np.array([0.25, -0.5])
    A = np.vstack([mip.A.toarray(), -mip.A.toarray()])
    sides = np.concatenate([mip.row_upper, -mip.row_lower])
    kept = np.isfinite(sides)
    truth = linprog(
        mip.sign * mip.cost,
        A_ub=A[kept],
        b_ub=sides[kept],
        A_eq=np.hstack([-weights, np.eye(2)]),
        b_eq=bias,
        bounds=list(zip(mip.lower, mip.upper, strict=True)),
    )
    assert truth.status == 0
    rng = np.random.default_rng(3)
    for _ in range(3):  # wherever the networks are looked at from
        step = step_at(program_for(scaled), scaled, rng.uniform(-1, 1, 5), penalty=1e4 * scaled.penalty)
        assert step.value == pytest.approx(truth.fun, abs=1e-6)
        assert step.z[3:] == pytest.approx(weights @ step.z[:3] + bias, abs=1e-7)
        assert step.slack == pytest.approx([0.0, 0.0], abs=1e-9)
        assert problem.mip.objective(step.z) == pytest.approx(mip.sign * truth.fun, abs=1e-6)


def test_what_the_limits_forbid_is_missed_and_paid_for():
    # y = x with x in [0, 1] and y in [3, 9]: the penalty buys |y - x| = 2
    problem = dt.Problem(dt.Mip(cost=[0.0, 1.0], lower=[0.0, 3.0], upper=[1.0, 9.0]))
    problem.add_predictor(linear_net([1.0]), [0], [1])
    scaled = scaled_of(problem)
    penalty = np.array([10.0])
    step = step_at(program_for(scaled), scaled, np.array([0.2, 3.0]), penalty=penalty)
    assert step.z == pytest.approx([1.0, 3.0])
    assert step.slack * scaled.spread == pytest.approx([2.0])
    assert step.value == pytest.approx(3.0 + 10.0 * 2.0)


@pytest.mark.parametrize(("penalty", "cheats"), [(4.0, True), (6.0, False)])
def test_a_penalty_is_per_unit_of_the_output(penalty, cheats):
    # a unit of y is worth 5, and y = 20 x is at most 20: beyond it only while a unit of |y - 20 x| costs less
    problem = dt.Problem(dt.Mip(cost=[0.0, -5.0], lower=[0.0, -90.0], upper=[1.0, 90.0]))
    problem.add_predictor(linear_net([20.0]), [0], [1])
    scaled = scaled_of(problem)
    assert scaled.spread[0] > 2.0
    step = step_at(program_for(scaled), scaled, np.array([0.2, 4.0]), penalty=np.array([penalty]))
    assert step.z == pytest.approx([1.0, 90.0 if cheats else 20.0])
    assert step.value == pytest.approx(-450.0 + penalty * 70.0 if cheats else -100.0)


def test_duals_tell_which_side_of_its_model_binds():
    for cost in (2.0, -2.0):
        problem = dt.Problem(dt.Mip(cost=[0.1, cost], lower=[-1.0, -9.0], upper=[1.0, 9.0]))
        problem.add_predictor(linear_net([1.0]), [0], [1])
        scaled = scaled_of(problem)
        step = step_at(program_for(scaled), scaled, np.zeros(2), penalty=np.array([100.0]))
        assert np.sign(step.duals[0]) == np.sign(cost)
        assert abs(step.duals[0]) / scaled.spread[0] == pytest.approx(2.0)


def test_an_infeasible_region_is_no_step():
    problem = blending()
    scaled = scaled_of(problem)
    lower, upper = scaled.host.lower.copy(), scaled.host.upper.copy()
    lower[:3] = upper[:3] = 2.0  # the first row allows a sum of 1
    model = scaled.networks.linearise(np.zeros(5))
    program = program_for(scaled)
    assert program.solve(scaled.host.cost, lower, upper, model, scaled.penalty, budget=Budget(9.0)) is None
    assert program.solve(scaled.host.cost, lower, upper, model, scaled.penalty, budget=Budget(0.0)) is None
    assert step_at(program, scaled, np.zeros(5)) is not None  # and it works again afterwards


# --- one-sided rows ------------------------------------------------------------------------------------


def tent():
    """max y, y = 1 - |x - 0.5| over x in [-2, 2]: concave, the optimum 1 at the kink."""
    net = nn.Sequential(linear_net([[1.0], [-1.0]], [-0.5, 0.5]), nn.ReLU(), linear_net([-1.0, -1.0], 1.0))
    problem = dt.Problem(dt.Mip(cost=[0.0, 1.0], lower=[-2.0, -9.0], upper=[2.0, 9.0], sense="max"))
    problem.add_predictor(net, [0], [1])
    return problem


def test_cuts_bound_a_concave_maximum():
    scaled = scaled_of(tent())
    left, right = np.array([0.0, 0.0]), np.array([1.5, 0.0])
    cut = BundleCut(scaled.networks.linearise(right), np.array([True]))
    senses = np.array([-1.0])  # in minimisation form the output is to be large: bounded from above
    program = program_for(scaled, bundle_size=2)
    alone = step_at(program, scaled, left, senses=senses, penalty=np.array([100.0]))
    assert alone.z[0] == pytest.approx(2.0)  # the slope at 0 says: as far right as possible
    assert -alone.value == pytest.approx(2.5)
    both = step_at(program, scaled, left, senses=senses, cuts=(cut,), penalty=np.array([100.0]))
    assert both.z == pytest.approx([0.5, 1.0])
    assert -both.value == pytest.approx(1.0)
    again = step_at(program, scaled, left, senses=senses, penalty=np.array([100.0]))
    assert again.z == pytest.approx(alone.z)  # the cut is gone when it is not asked for


def test_cuts_bound_a_convex_minimum():
    net = nn.Sequential(linear_net([[1.0], [-1.0]], [-0.5, 0.5]), nn.ReLU(), linear_net([1.0, 1.0], -1.0))
    problem = dt.Problem(dt.Mip(cost=[0.0, 1.0], lower=[-2.0, -9.0], upper=[2.0, 9.0]))
    problem.add_predictor(net, [0], [1])
    scaled = scaled_of(problem)
    cut = BundleCut(scaled.networks.linearise(np.array([1.5, 0.0])), np.array([True]))
    program = program_for(scaled, bundle_size=1)
    step = step_at(
        program, scaled, np.zeros(2), senses=np.array([1.0]), cuts=(cut,), penalty=np.array([100.0])
    )
    assert step.z == pytest.approx([0.5, -1.0])


def test_a_cut_that_is_not_used_changes_nothing():
    scaled = scaled_of(tent())
    unused = BundleCut(scaled.networks.linearise(np.array([1.5, 0.0])), np.array([False]))
    senses = np.array([-1.0])
    step = step_at(program_for(scaled, bundle_size=1), scaled, np.zeros(2), senses=senses, cuts=(unused,))
    assert step.z[0] == pytest.approx(2.0)


# --- a live program is as good as a new one ---------------------------------------------------------------


@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize("make", [blending, mixed], ids=lambda make: make.__name__)
def test_swapping_linearisations_is_as_good_as_building_anew(make, integer):
    scaled = scaled_of(make())
    program = program_for(scaled, integer=integer, bundle_size=2)
    rng = np.random.default_rng(4)
    m = scaled.networks.count
    models = []
    for k in range(12):
        z = rng.uniform(-1, 1, scaled.host.n_columns)
        senses = rng.integers(-1, 2, m).astype(float)
        penalty = scaled.penalty * rng.uniform(0.5, 20.0)
        cuts = tuple(
            BundleCut(model, rng.random(m) < 0.5) for model in models[-int(rng.integers(0, 3)) :][:2]
        )
        radius = None if k % 3 == 0 else float(rng.uniform(0.1, 1.0))
        options = {"radius": radius, "penalty": penalty, "senses": senses, "cuts": cuts, "gap": 0.0}
        step = step_at(program, scaled, z, **options)
        fresh = step_at(program_for(scaled, integer=integer, bundle_size=2), scaled, z, **options)
        assert (step is None) == (fresh is None)
        if step is not None:
            assert step.value == pytest.approx(fresh.value, abs=1e-6)
        models.append(scaled.networks.linearise(z))


def by_hand(scaled, z, penalty, *, integer):
    """The step's program as its docstring has it, put together anew and solved by scipy."""
    host, networks = scaled.host, scaled.networks
    model = networks.linearise(z)
    J = networks.jacobian(model).toarray()
    n, m = host.n_columns, networks.count
    conditions = networks.conditions
    r = np.flatnonzero(~networks.classes)
    width = n + 2 * r.size + conditions.count
    rows, low, high = [], [], []
    for i in range(host.n_rows):
        rows.append(np.append(host.A.toarray()[i], np.zeros(width - n)))
        low.append(host.row_lower[i])
        high.append(host.row_upper[i])
    for k, o in enumerate(r):  # y - slope'x - up + down = offset
        row = np.zeros(width)
        row[:n] = -J[o]
        row[networks.outputs[o]] += 1.0
        row[n + k], row[n + r.size + k] = -1.0, 1.0
        rows.append(row)
        low.append(model.offset[o])
        high.append(model.offset[o])
    form = conditions.form.toarray()
    for c in range(conditions.count):  # form'(offset + J x) + miss >= margin while active, by a large M
        row = np.zeros(width)
        row[:n] = form[c] @ J
        row[n + 2 * r.size + c] = 1.0
        M = 1e3
        row[conditions.column[c]] += -M if conditions.when[c] else M
        rows.append(row)
        side = conditions.margin[c] - form[c] @ model.offset
        low.append(side - M if conditions.when[c] else side)
        high.append(np.inf)
    cost = np.concatenate([host.cost, penalty[r], penalty[r], np.abs(form) @ penalty])
    assert m == J.shape[0]
    mip = dt.Mip(
        cost=cost, A=np.array(rows), row_lower=low, row_upper=high,
        lower=np.append(host.lower, np.zeros(width - n)),
        upper=np.append(host.upper, np.full(width - n, np.inf)),
        integer=np.append(host.integer if integer else np.zeros(n, bool), np.zeros(width - n, bool)),
    )  # fmt: skip
    return by_scipy(mip)[0]


@pytest.mark.parametrize("make", [blending, mixed], ids=lambda make: make.__name__)
def test_the_program_is_what_its_docstring_says(make):
    """With the integers in it, classes and all; M differs, which whole classes do not feel."""
    scaled = scaled_of(make())
    program = program_for(scaled, integer=True)
    rng = np.random.default_rng(5)
    for scale in (0.3, 1.0, 10.0):
        z = rng.uniform(-1, 1, scaled.host.n_columns)
        penalty = scale * scaled.penalty
        step = step_at(program, scaled, z, penalty=penalty, gap=0.0)
        assert step.value == pytest.approx(by_hand(scaled, z, penalty, integer=True), abs=1e-5)


def test_a_start_for_the_mip_is_a_point_of_it():
    scaled = scaled_of(mixed())
    z = scaled.problem.predict(np.zeros(9))
    program = program_for(scaled, integer=True)
    with_start = step_at(program, scaled, z, start=z, gap=0.0)
    without = step_at(program_for(scaled, integer=True), scaled, z, gap=0.0)
    assert with_start.value == pytest.approx(without.value, abs=1e-6)

"""Algorithm 1: right on problems with known answers, honest about what it records, the paper's settings."""

import inspect
from dataclasses import replace

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.methods.dual_decomposition import DualDecomposition
from tests.conformance import nets
from tests.conftest import FULL, sample, volume
from tests.small import Parabola, bowl, knapsack, linear_net, random_mlp
from tests.tanh import problem_of, tanh_net

LONG = 600.0
"""Seconds, where iterations are to decide, however busy the machine is."""


def test_the_loop_is_one_short_function_in_the_papers_order():
    source = inspect.getsource(DualDecomposition.solve)
    steps = ["1. MIP step", "2. network step", "3. dual update", "4. every candidate", "5. penalty"]
    places = [source.index(step) for step in steps]
    assert places == sorted(places)
    assert len(source.splitlines()) < 60


def test_the_papers_settings():
    paper = dt.DualDecomposition.paper()
    assert (paper.rho, paper.tolerance, paper.iterations, paper.scaling) == (10.0, 1e-4, 50, "none")
    assert paper.nn_solver == dt.ProjectedGradient(
        steps=25, lr=0.01, decay=False, keep_best=True, state="fresh"
    )
    assert (paper.surrogate, paper.network_start) == ("logit", "copies")
    assert paper.penalty == dt.FixedPenalty()
    assert dt.DualDecomposition.paper(adaptive=True).penalty == dt.IncreasingPenalty()
    assert (paper.copies, paper.dual_update, paper.engine) == ("rows", True, "auto")
    assert dt.DualDecomposition.paper(engine="scip").engine == "scip"


def test_the_copies_may_start_at_the_best_point_of_the_mip_alone():
    seen = []

    class Listening(dt.ProjectedGradient):
        def solve(self, block, terms, start, budget):
            seen.append(start.numpy().copy())
            return super().solve(block, terms, start, budget)

    mip = dt.Mip([-1.0, 2.0, 0.5], lower=[-1.0, -1.0, -9.0], upper=[3.0, 1.0, 9.0])
    for first, expected in (("mip", [[3.0, -1.0]]), ("middle", [[1.0, 0.0]])):
        problem = dt.Problem(mip)
        problem.add_predictor(linear_net([1.0, 1.0]), [0, 1], [2])
        method = replace(
            dt.DualDecomposition.paper(), first=first, iterations=1, nn_solver=Listening(steps=1)
        )
        dt.solve(problem, method, time_limit=LONG, log=False)
        assert np.allclose(seen.pop(), expected, atol=1e-6)


def epigraph() -> dt.Problem:
    """min t over t >= (x - 0.3)^2 + (y - 0.7)^2 and x + y <= 0.6: the output meets a column of nobody."""
    mip = dt.Mip(
        cost=[0.0, 0.0, 1.0, 0.0], A=[[0.0, 0.0, 1.0, -1.0], [1.0, 1.0, 0.0, 0.0]], row_lower=[0.0, -np.inf],
        row_upper=[np.inf, 0.6], lower=[-1.0, -1.0, -9.0, -9.0], upper=[1.0, 1.0, 9.0, 9.0],
    )  # fmt: skip
    problem = dt.Problem(mip)
    target = torch.tensor([0.3, 0.7], dtype=torch.float64)
    problem.add_predictor(
        lambda X: ((torch.as_tensor(X) - target) ** 2).sum(dim=1, keepdim=True), [0, 1], [3], name="bowl"
    )
    return problem


@pytest.mark.parametrize("copies", sample(["inputs", "rows"]))
def test_both_forms_reach_a_convex_optimum(copies):
    """The nearest point of the half-plane is 0.4 / sqrt(2) away."""
    method = dt.DualDecomposition(iterations=100, copies=copies, patience=None)
    result = dt.solve(epigraph(), method, time_limit=LONG, log=False)
    assert result.objective == pytest.approx(0.08, abs=2e-3)
    kinds = {residual.kind for row in result.trace for residual in row.residuals}
    assert kinds == ({"inputs"} if copies == "rows" else {"inputs", "outputs"})
    assert result.engine == "piqp"


def test_without_its_dual_update_the_multipliers_stay_at_zero():
    method = dt.DualDecomposition(iterations=10, dual_update=False, scaling="none", patience=None)
    result = dt.solve(bowl(), method, log=False)
    assert not result.multipliers.inputs["bowl"].any()
    assert result.trace.column("merit") == pytest.approx(result.trace.column("lagrangian"), rel=1e-12)


def test_convex_and_continuous_reaches_the_optimum():
    result = dt.solve(bowl(), dt.DualDecomposition(iterations=200, tolerance=1e-6, patience=None), log=False)
    assert result.objective == pytest.approx((1 - 0.25) ** 2 / 2, abs=1e-4)
    assert result.stop_reason == "agreed"
    assert result.residual < 1e-6


@pytest.mark.parametrize("sense", ["min", "max"])
def test_binaries_and_a_linear_network(sense):
    result = dt.solve(knapsack(sense), log=False)
    assert result.objective == (-4.0 if sense == "min" else 2.0)
    assert result.violation.within()


def test_multipliers_at_agreement_are_the_gradient():
    """KKT of the convex problem: lambda = -grad d'f(u) at the limit."""
    method = dt.DualDecomposition(iterations=300, tolerance=1e-6, patience=None, scaling="none", rho=4.0)
    result = dt.solve(bowl((0.5, -0.25)), method, log=False)
    u = result.x[:2]
    gradient = 2.0 * (u - np.array([0.5, -0.25]))
    assert result.multipliers.inputs["bowl"][0] == pytest.approx(-gradient, abs=2e-3)


def test_the_trace_is_what_it_says():
    method = dt.DualDecomposition(iterations=6, tolerance=1e-12, patience=None, scaling="none", rho=3.0)
    result = dt.solve(bowl(), method, log=False)
    assert [row.iteration for row in result.trace] == [1, 2, 3, 4, 5, 6]
    for row in result.trace:
        assert row.rho == 3.0
        assert row.merit >= row.lagrangian - 1e-12  # the dual step never lowers it
        assert row.exact
        assert row.objective >= row.incumbent - 1e-12 or np.isnan(row.objective)
        assert {r.kind for r in row.residuals} == {"inputs"}
        assert row.mip_seconds >= 0 and row.nn_seconds > 0 and row.check_seconds > 0
    assert result.iterations == 6
    assert result.stop_reason == "iterations"
    assert result.residual == result.trace[-1].primal


def test_the_recorded_lagrangian_is_the_function():
    """One iteration from known points, recomputed by hand."""
    method = dt.DualDecomposition(iterations=1, tolerance=1e-12, scaling="none", rho=2.0)
    result = dt.solve(bowl((0.5, -0.25)), method, start=np.array([0.2, 0.8, 0.0]), log=False)
    row = result.trace[0]
    # lambda(0) = 0, so lambda(1) = W (u - x) gives u - x, and x(1) is the projection of u(0) on x0 + x1 = 1
    apart = result.multipliers.inputs["bowl"][0] / 2.0
    x = np.array([0.2, 0.8])
    u = x + apart
    g = float(((u - [0.5, -0.25]) ** 2).sum())
    assert row.lagrangian == pytest.approx(g + 1.0 * float(apart @ apart), rel=1e-6)
    assert row.merit == pytest.approx(row.lagrangian + 2.0 * float(apart @ apart), rel=1e-6)
    assert row.primal == pytest.approx(np.abs(apart).max())


def mixed_problem():
    """Three different networks: a class, a regression with its own limit, and one tied to a host column."""
    mip = dt.Mip(
        cost=[0.1, 0.1, 0.0, 0.5, -1.0, 1.0, 0.0, 2.0],
        A=[[1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0, 1.0]],
        row_lower=[-np.inf, 0.0],
        row_upper=[2.0, np.inf],
        lower=[-1.0, -1.0, 0.0, 0.0, 0.0, -0.5, -np.inf, 0.0],
        upper=[1.0, 1.0, 1.0, 3.0, 1.0, 9.0, np.inf, 50.0],
        integer=[False, False, True, True, True, False, False, False],
        names=["u", "v", "b", "k", "class", "value", "need", "buy"],
    )
    problem = dt.Problem(mip)
    problem.add_predictor(
        random_mlp(2, seed=3), ["u", "v"], ["class"], output_type="classification", name="judge"
    )
    problem.add_predictor(nets.make("gelu-layernorm", features=3), ["u", "b", "k"], ["value"], name="rate")
    problem.add_predictor(nets.make("lstm", features=2), ["v", "k"], ["need"], name="want")
    return problem


@pytest.mark.parametrize(
    ("solver", "engine"),
    sample(
        [
            (dt.ProjectedGradient(), "scip"),
            (dt.LogBarrier(), "highs"),
            (dt.ProjectedGradient(), "highs"),
            (dt.LogBarrier(), "scip"),
        ],
        2,
    ),
    ids=lambda part: part if isinstance(part, str) else type(part).__name__,
)
def test_several_different_networks_in_both_forms(solver, engine):
    # one weight is 250,000 and the others 10: SCIP's cuts end at a gap of 0.1 %, and more it does not prove
    gap = 1e-2 if engine == "scip" else 1e-3
    method = dt.DualDecomposition(nn_solver=solver, engine=engine, iterations=15 if FULL else 3, mip_gap=gap)
    result = dt.solve(mixed_problem(), method, time_limit=LONG, log=False)
    assert result.violation.within()
    couplings = {(r.block, r.kind) for r in result.trace[0].residuals}
    assert couplings == {("judge", "inputs"), ("rate", "inputs"), ("want", "inputs"), ("want", "outputs")}
    assert set(result.multipliers.inputs) == {"judge", "rate", "want"}
    assert set(result.multipliers.outputs) == {"want"}


def test_swapping_parts_is_one_argument_and_the_answer_stays():
    """The convex problem: sub-solvers and engines all end at its optimum."""
    optimum = (1 - 0.25) ** 2 / 2
    solvers = (dt.ProjectedGradient(), dt.LogBarrier(), dt.LogBarrier(variant="l-bfgs-b"))
    for solver in sample(solvers):
        for engine in ("piqp", "highs", "scip"):
            method = dt.DualDecomposition(
                nn_solver=solver, engine=engine, iterations=60 if FULL else 15, mip_gap=1e-7
            )
            result = dt.solve(bowl(), method, log=False)
            assert result.objective == pytest.approx(optimum, abs=2e-3), (solver, engine)


@volume("the differential runs have chains for this method too")
def test_chained_networks():
    """y1 = x0 - x1, y2 = (y1 - 1)^2, min y2: 0 where x0 - x1 = 1."""
    mip = dt.Mip(
        cost=[0.0, 0.0, 0.0, 1.0], lower=[-1.0, -1.0, -np.inf, -np.inf], upper=[1.0, 1.0, np.inf, np.inf]
    )
    problem = dt.Problem(mip)
    problem.add_predictor(linear_net([1.0, -1.0]), [0, 1], [2], name="first")
    problem.add_predictor(Parabola([1.0]), [2], [3], name="second")
    result = dt.solve(
        problem, dt.DualDecomposition(iterations=100, patience=None), time_limit=LONG, log=False
    )
    assert result.objective == pytest.approx(0.0, abs=1e-3)


def test_a_start_with_multipliers_goes_on_where_it_left_off():
    whole = dt.DualDecomposition(iterations=40, tolerance=1e-9, patience=None, penalty=dt.FixedPenalty())
    cold = dt.solve(bowl(), whole, log=False)
    again = dt.solve(bowl(), replace(whole, iterations=3), start=cold, log=False)
    fresh = dt.solve(bowl(), replace(whole, iterations=3), log=False)
    assert again.trace[0].primal < fresh.trace[0].primal
    assert again.objective <= cold.objective + 1e-9


def test_a_start_that_does_not_fit_is_refused():
    other = dt.solve(knapsack(), dt.DualDecomposition(iterations=1), log=False)
    with pytest.raises(dt.OptionError, match="another problem"):
        dt.solve(bowl(), "dual-decomposition", start=other, log=False)
    mine = dt.solve(bowl(), dt.DualDecomposition(iterations=1), log=False)
    broken = replace(mine, multipliers=replace(mine.multipliers, inputs={"bowl": np.full((1, 2), np.nan)}))
    with pytest.raises(dt.OptionError, match="multipliers.*'bowl'"):
        dt.solve(bowl(), "dual-decomposition", start=broken, log=False)
    empty = replace(mine, multipliers=replace(mine.multipliers, inputs={}))
    with pytest.raises(dt.OptionError, match="no multipliers for the inputs of 'bowl'"):
        dt.solve(bowl(), "dual-decomposition", start=empty, log=False)


def test_equality_on_an_output_is_for_projection_and_refused_by_the_barrier():
    mip = dt.Mip(cost=[1.0, 1.0, 0.0], lower=[-1.0, -1.0, 0.3], upper=[1.0, 1.0, 0.3], names=["a", "b", "y"])
    problem = dt.Problem(mip)
    problem.add_predictor(random_mlp(2, seed=3), ["a", "b"], ["y"], name="net")
    with pytest.raises(dt.UnsupportedError, match="bounds of y.*equality.*ProjectedGradient"):
        dt.solve(problem, dt.DualDecomposition(nn_solver=dt.LogBarrier()), log=False)
    result = dt.solve(problem, dt.DualDecomposition(iterations=100, patience=None), log=False)
    assert result.status in ("feasible", "no_solution")


def test_a_frozen_loop_is_called_stalled():
    """With a huge rho the integer stays where it is, and the paper's steps circle round it for ever."""
    mip = dt.Mip(cost=[0.0, 1.0], lower=[0.0, -np.inf], upper=[4.0, np.inf], integer=[True, False])
    problem = dt.Problem(mip)
    problem.add_predictor(Parabola([3.4]), [0], [1])
    method = replace(dt.DualDecomposition.paper(), rho=1e4, tolerance=1e-12, iterations=200, patience=8)
    result = dt.solve(problem, method, log=False)
    assert result.stop_reason == "stalled"
    assert result.iterations < 200
    assert result.x[0] == 2.0  # where it started; 3 is better


def test_a_problem_with_only_fixed_inputs():
    mip = dt.Mip(cost=[0.0, 1.0], lower=[0.5, -np.inf], upper=[0.5, np.inf])
    problem = dt.Problem(mip)
    problem.add_predictor(linear_net([2.0]), [0], [1])
    assert dt.solve(problem, log=False).objective == 1.0


def test_float32_networks_are_solved_and_their_own_word_counts():
    mip = dt.Mip(cost=[0.0, 0.0, 1.0], lower=[-1.0, -1.0, -np.inf], upper=[1.0, 1.0, np.inf])
    problem = dt.Problem(mip)
    net = random_mlp(2, seed=5, dtype=torch.float32)
    problem.add_predictor(net, [0, 1], [2])
    result = dt.solve(problem, dt.DualDecomposition(iterations=10), log=False)
    with torch.no_grad():
        own = float(net(torch.tensor(result.x[None, :2], dtype=torch.float32)))
    assert result.x[2] == own
    assert result.violation.precision.amount < 1e-5


def test_any_callable():
    def bumps(X):
        return np.sin(3 * X[:, 0]) + X[:, 1] ** 2

    mip = dt.Mip(cost=[0.0, 0.0, 1.0], lower=[-1.5, -1.0, -np.inf], upper=[1.5, 1.0, np.inf])
    problem = dt.Problem(mip)
    problem.add_predictor(bumps, [0, 1], [2])
    result = dt.solve(problem, log=False)
    assert result.objective == pytest.approx(-1.0, abs=1e-2)


@pytest.mark.parametrize(
    ("options", "culprit"),
    [
        ({"rho": 0.0}, "rho is 0"),
        ({"rho": float("nan")}, "rho is nan"),
        ({"tolerance": -1.0}, "tolerance"),
        ({"iterations": 0}, "iterations is 0"),
        ({"scaling": "unit"}, "scaling is 'unit'"),
    ],
)
def test_options_are_checked(options, culprit):
    with pytest.raises(dt.OptionError, match=culprit):
        dt.DualDecomposition(**options)


@pytest.mark.parametrize("free", sample([(-np.inf, np.inf), (0.0, np.inf)]))
def test_a_column_that_follows_a_free_output(free):
    """max z with z <= 3 y + 1 is bounded by the network alone; HiGHS's tangents must not think otherwise."""
    p = problem_of(
        [0.01, 0.0, -1.0], [[0.0, -3.0, 1.0]], -np.inf, 1.0,
        lower=[0.0, free[0], -np.inf], upper=[4.0, free[1], np.inf], integer=[True, False, False],
    )  # fmt: skip
    network = tanh_net(1)
    with torch.no_grad():
        network[2].bias += 2.0
        best = min(
            0.01 * k - (3.0 * network(torch.full((1, 1), float(k)).double()).item() + 1.0) for k in range(5)
        )
    p.add_predictor(network, [0], [1])
    result = dt.solve(p, "dual-decomposition", log=False)
    assert result.status == "feasible"
    assert best - 1e-6 <= result.objective <= best + 0.1 * abs(best)
    exact = dt.solve(p, log=False)  # few values: a table
    assert exact.status == "optimal"
    assert exact.objective == pytest.approx(best, abs=1e-6)


def test_agreement_on_a_refused_point_goes_on_and_looks_around():
    network = tanh_net(2, 3, torch.float32, seed=1)
    p = problem_of(
        [1.0, 1.0, 0.0, 0.0, 0.0], lower=[-2.0, -2.0, 0.0, 1.0, 0.0], upper=[2.0, 2.0, 1.0, 1.0, 1.0]
    )
    p.add_predictor(network, [0, 1], [2, 3, 4], output_type="classification")
    assert dt.solve(p, log=False).x is not None

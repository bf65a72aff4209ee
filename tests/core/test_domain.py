"""`within=`: what it adds to a problem, takes away again, and refuses."""

import numpy as np
import pytest
import torch
from torch import nn

import dovetail as dt

SEEN = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0], [1.0, 1.0]])


def plane(samples=1):
    """Maximise the sum of the outputs; y = 2 a + b."""
    names = [f"{what}[{i}]" for i in range(samples) for what in "ab"] + [f"y[{i}]" for i in range(samples)]
    cost = [0.0] * (2 * samples) + [1.0] * samples
    return dt.Problem(
        dt.Mip(cost, lower=-9.0, upper=[9.0] * (2 * samples) + [99.0] * samples, sense="max", names=names)
    )


def add(problem, within, samples=1, **options):
    inputs = np.arange(2 * samples).reshape(samples, 2)
    outputs = np.arange(2 * samples, 3 * samples)[:, None]
    return problem.add_predictor(
        lambda X: 2.0 * X[:, 0] + X[:, 1], inputs, outputs, name="sum", within=within, **options
    )


def solved(problem, **options):
    return dt.solve(problem, dt.Auto(effort=2), log=False, **options)


@pytest.mark.parametrize(
    ("within", "best"), [("box", 12.0), ("hull", 8.0), (["box", "hull"], 8.0), (None, 27.0)]
)
def test_the_decision_stays_inside(within, best):
    problem = plane(2)
    add(problem, within, 2, data=SEEN)
    result = solved(problem)
    assert result.objective == pytest.approx(2 * best, abs=1e-4)
    assert dt.check(problem, result.x).within()
    if within is not None:
        assert result.extrapolations == ()


@pytest.mark.parametrize(
    ("within", "point"), [("hull", [2.1, 2.1, 6.3]), (dt.Near(distance=0.5), [2.0, 2.0, 6.0])]
)
def test_the_check_refuses_points_outside(within, point):
    problem = plane()
    add(problem, within, data=SEEN)
    assert "violates constraint sum within" in str(dt.check(problem, point))
    assert dt.check(problem, [4.0, 0.0, 8.0]).within()


def test_constraints_have_the_names_of_predictor_and_domain():
    problem = plane()
    add(problem, [dt.Box(SEEN), dt.Near(SEEN, distance=1.0), dt.Near(SEEN, distance=2.0)])
    names = list(problem.mip.row_names)
    assert names[:2] == ["sum within box: a[0]", "sum within box: b[0]"] and "sum within near" in names
    assert [block.name for block in problem.blocks] == ["sum", "sum within near", "sum within near2"]
    table = solved(problem).constraint_table
    assert table["sum within near"].slack >= 0.0


def test_a_column_that_all_samples_read_has_one_constraint():
    problem = dt.Problem(dt.Mip([0.0, 0.0, 0.0, 1.0, 1.0], upper=9.0))
    data = np.array([[0.0, 0.0], [3.0, 3.0]])
    problem.add_predictor(lambda X: X.sum(axis=1), [[0, 1], [0, 2]], [[3], [4]], data=data, within="box")
    assert problem.mip.n_rows == 3


def test_weights_of_a_hull_are_filled_in_by_the_check_and_let_proofs_close():
    rng = np.random.default_rng(0)
    data = rng.normal(size=(30, 5))
    cost = rng.normal(size=5)
    best = (data @ cost).max()  # a linear function is largest at a corner
    problem = dt.Problem(dt.Mip([*cost, 0.0], lower=-9.0, upper=9.0, sense="max"))
    problem.add_predictor(nn.Linear(5, 1).double(), range(5), [5], data=data, within="hull", name="net")
    result = solved(problem)
    assert result.status == "optimal" and result.objective == pytest.approx(best, abs=1e-4)
    assert dt.check(problem, result.x[:6]).within()
    outside = problem.predict(np.append(2.0 * result.x[:5], np.zeros(31)))
    assert "net within hull" in str(dt.check(problem, outside[:6]))
    problem.remove_predictor("net")
    assert problem.confining.size == 0 and problem.mip.n_rows == 0


def test_a_bound_is_proved_beside_a_score_without_operations():
    problem = dt.Problem(dt.Mip([0.0, 0.0, 1.0], lower=-2.0, upper=[2.0, 2.0, 99.0], sense="max"))
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 6), nn.ReLU(), nn.Linear(6, 1)).double()
    within = dt.Score(lambda X: -(X**2).sum(axis=1), at_least=-1.0)
    problem.add_predictor(net, [0, 1], [2], within=within)
    result = dt.solve(problem, dt.Auto(effort=20), log=False)
    angle = np.linspace(0.0, 2.0 * np.pi, 2000)
    circle = torch.tensor(np.column_stack([np.cos(angle), np.sin(angle)]))
    square = torch.tensor(np.stack(np.meshgrid(*[np.linspace(-2.0, 2.0, 60)] * 2), -1).reshape(-1, 2))
    with torch.no_grad():
        true, wide = float(net(circle).max()), float(net(square).max())
    assert result.objective == pytest.approx(true, abs=1e-3)
    assert true - 1e-6 <= result.bound <= wide + 0.1


def test_removal_takes_the_domain_away():
    problem = plane()
    before = problem.mip
    add(problem, ["box", dt.Near(distance=1.0)], data=SEEN)
    problem.remove_predictor("sum")
    assert problem.blocks == () and problem.mip.n_rows == before.n_rows
    add(problem, None)
    assert solved(problem).objective == pytest.approx(27.0, abs=1e-4)


def test_with_many_samples_a_box_is_bounds_and_goes_again():
    problem = plane(101)
    add(problem, ["box", dt.Near(distance=1.0)], 101, data=SEEN)
    assert problem.mip.n_rows == 101 and problem.mip.upper[:4].tolist() == [4.0] * 4
    assert not dt.check(problem, problem.predict(np.full(problem.mip.n_columns, 4.1))).within()
    problem.remove_predictor("sum")
    assert problem.mip.n_rows == 0 and problem.mip.upper[:4].tolist() == [9.0] * 4


def test_a_class_of_yours_is_a_domain():
    class Ball:
        def region(self, data, features, samples):
            empty = np.empty(0)
            return dt.Region(
                "ball", np.empty((0, features)), empty, empty, lambda X: (X**2).sum(axis=1), most=5.0
            )

    problem = plane()
    add(problem, Ball())
    assert solved(problem).objective == pytest.approx(5.0, abs=1e-3)


def test_an_empty_domain_is_a_conflict():
    problem = plane()
    add(problem, ["box", dt.Box(SEEN + 10.0)], data=SEEN)
    result = solved(problem)
    assert result.status == "infeasible" and "within box" in str(result.conflict)


@pytest.mark.parametrize(
    ("within", "told"),
    [
        ("ball", "domain 'ball' is not known; choose box, hull, near"),
        ("box", "sum: within: Box needs the training inputs: give data="),
        (dt.Near(np.zeros((1, 2))), "1 rows for 1 neighbours"),
        (3.0, "within has 3.0"),
        ([None], "within has None"),
        (dt.Box(np.zeros((5, 3))), "data has shape"),
    ],
)
def test_what_is_refused(within, told):
    problem = plane()
    with pytest.raises(dt.DovetailError, match=told):
        add(problem, within)
    assert problem.blocks == () and problem.mip.n_rows == 0

"""check: finds what is wrong, says where, and calls right what is right."""

import numpy as np
import pytest
import torch
from torch import nn

import dovetail as dt
from dovetail.core.check import Checker
from tests.conftest import FULL
from tests.small import linear_net, random_mlp
from tests.tanh import problem_of


def sample_problem(dtype=torch.float64):
    mip = dt.Mip(
        cost=[1.0, -1.0, 0.5, 0.0, 0.0],
        A=[[1.0, 1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0, 0.0]],
        row_lower=[-np.inf, -50.0],
        row_upper=[5.0, 50.0],
        lower=[-3.0, -3.0, 0.0, -np.inf, 0.0],
        upper=[3.0, 3.0, 4.0, np.inf, 1.0],
        integer=[False, False, True, False, True],
        names=["u", "v", "k", "y", "c"],
        row_names=["cap", "mix"],
    )
    problem = dt.Problem(mip)
    problem.add_predictor(random_mlp(2, seed=1, dtype=dtype), ["u", "v"], ["y"], name="f")
    problem.add_predictor(
        random_mlp(3, seed=2, dtype=dtype), ["u", "v", "k"], ["c"], output_type="classification", name="g"
    )
    return problem


def feasible_point(problem, rng):
    while True:
        x = np.concatenate([rng.uniform(-2, 2, 2), rng.integers(0, 5, 1), [0.0, 0.0]])
        x = problem.predict(x)
        if dt.check(problem, x).within():
            return x


def test_a_feasible_point_is_feasible():
    problem = sample_problem()
    violation = dt.check(problem, feasible_point(problem, np.random.default_rng(0)))
    assert violation.within()
    assert violation.worst.amount == 0.0


@pytest.mark.parametrize("kind", ["rows", "bounds", "integrality", "prediction", "class"])
def test_finds_planted_faults(kind):
    """Points that are right but for one fault, just beyond the tolerance and far beyond it."""
    problem = sample_problem()
    checker = Checker(problem)
    rng = np.random.default_rng(1)
    count = 400 if FULL else 15
    for k in range(count):
        x = feasible_point(problem, rng)
        size = 10.0 ** rng.uniform(-5.5, 0.5)
        if kind == "rows":
            x[1] = 5.0 + size - x[0]
            x = problem.predict(np.clip(x, -9, 9))
        elif kind == "bounds":
            x[0] = -3.0 - size
            x = problem.predict(x)
        elif kind == "integrality":
            x[2] = np.clip(np.round(x[2]) + min(size, 0.5), 0.0, 3.5)
            x = problem.predict(x)
        elif kind == "prediction":
            x[3] += size * max(1.0, abs(x[3]))
        else:
            x[4] = 1.0 - x[4]
        field = "prediction" if kind == "class" else kind
        violation = checker.violation(x)
        found = getattr(violation, field)
        assert not violation.within(), f"fault {k} of size {size} in {kind} was missed"
        assert found.amount > 1e-6
        names = {"rows": "cap", "bounds": "u", "integrality": "k", "prediction": "f", "class": "g"}
        if kind != "rows":
            assert names[kind] in found.name


def test_names_the_worst():
    problem = sample_problem()
    x = feasible_point(problem, np.random.default_rng(2))
    x[0] = 99.0
    violation = dt.check(problem, problem.predict(x))
    assert violation.bounds.name == "u"
    assert violation.rows.name == "cap"
    assert violation.bounds.amount == pytest.approx(96.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_refuses_what_is_not_finite(bad):
    problem = sample_problem()
    x = feasible_point(problem, np.random.default_rng(3))
    x[1] = bad
    violation = dt.check(problem, x)
    assert not violation.within()
    assert str(violation) == f"infeasible: violates finiteness: v is {bad}"


def test_wrong_length_is_an_error():
    with pytest.raises(dt.ModelError, match="2 entries, expected 5"):
        dt.check(sample_problem(), [1.0, 2.0])


def test_float32_is_the_truth_and_float64_is_reported():
    problem = sample_problem(torch.float32)
    x = feasible_point(problem, np.random.default_rng(4))
    net = problem.blocks[0].predictor
    with torch.no_grad():
        own = random_mlp(2, seed=1, dtype=torch.float32)(
            torch.tensor(x[None, :2], dtype=torch.float32)
        ).item()
    assert net.predict(x[None, :2])[0, 0] == own
    violation = dt.check(problem, x)
    assert 0.0 < violation.precision.amount < 1e-5
    assert violation.within()


def test_a_class_that_hangs_on_the_dtype_is_refused():
    # 1 + 2^-30 is 1 in float32, so that x - 1 is 0 there (class 1 at threshold 0) and the float64 copy
    # of the same weights sees a negative number
    mip = dt.Mip(cost=[0.0, 1.0], lower=[0.0, 0.0], upper=[2.0, 1.0], integer=[False, True])
    problem = dt.Problem(mip)
    net = linear_net([-1.0], 1.0, dtype=torch.float32)
    problem.add_predictor(net, [0], [1], output_type="classification", name="edge")
    x = problem.predict(np.array([1.0 + 2.0**-30, 0.0]))
    assert x[1] == 1.0
    violation = dt.check(problem, x)
    assert not violation.within()
    assert "differs between its own dtype and float64" in violation.prediction.name


class Insists(nn.Module):
    """Float32 is written into its code."""

    def __init__(self):
        super().__init__()
        self.inner = linear_net([1.0, 1.0], dtype=torch.float32)

    def forward(self, x):
        return self.inner(x.float() * torch.ones(2, dtype=torch.float32))


@pytest.mark.parametrize("scripted", [False, True])
def test_a_module_with_float32_in_its_code(scripted):
    mip = dt.Mip(cost=[0.0, 0.0, 1.0], lower=-1.0, upper=[1.0, 1.0, 9.0])
    problem = dt.Problem(mip)
    net = torch.jit.script(Insists()) if scripted else Insists()
    problem.add_predictor(net, [0, 1], [2], name="fixed")
    violation = dt.check(problem, problem.predict(np.array([0.1, 0.2, 0.0])))
    assert violation.within()
    if scripted:  # nobody can reach into compiled code
        assert np.isnan(violation.precision.amount)
        assert "no float64 copy" in violation.precision.name
    else:
        assert 0.0 < violation.precision.amount < 1e-7


def test_the_judge_is_not_blinded_by_an_overflow():
    p = problem_of(
        [0.0, 0.0, 0.0],
        [[1e10, -1e10, 0.0], [0.0, 0.0, 1.0]],
        [-np.inf, 5.0],
        [np.inf, np.inf],
        lower=-np.inf,
    )
    with np.errstate(over="ignore", invalid="ignore"):
        assert not dt.check(p, [1e300, 1e300, 1.0]).within()


def test_what_is_not_a_number_is_no_class():
    class Root(nn.Module):
        def forward(self, x):
            return torch.sqrt(x - 0.01) + 1.0

    p = problem_of([1.0, 0.0], lower=0.0, upper=[1.0, 1.0])
    with pytest.raises(dt.PredictorError, match="nan"):
        p.add_predictor(Root(), [0], [1], output_type="classification", threshold=0.0)
    p = problem_of([1.0, 0.0], lower=[0.1, 0.0], upper=[1.0, 1.0])
    p.add_predictor(Root(), [0], [1], output_type="classification", threshold=0.0)
    assert dt.check(p, [0.0, 0.0]).prediction.amount == np.inf


def test_a_violation_shows_what_is_missed():
    mip = dt.Mip([1.0], [[1.0]], 2.0, 9.0, row_names=["<demand>"])
    missed, met = dt.check(dt.Problem(mip), [1.5]), dt.check(dt.Problem(mip), [2.0])
    assert str(missed) == "infeasible: violates constraint <demand> by 5.0e-01"
    assert repr(missed) == f"<Violation: {missed}; rows 5.0e-01>"
    assert str(met) == "feasible: constraints, bounds, integers and predictions hold; largest violation 0"
    assert repr(met) == f"<Violation: {met}>"
    nearly = dt.check(dt.Problem(mip), [2.0 - 2.0**-30])
    assert str(nearly).endswith("hold; largest violation: constraint <demand> by 9.3e-10")
    assert "&lt;demand&gt;" in missed._repr_html_() and "<demand>" not in missed._repr_html_()


@pytest.mark.parametrize(("slow", "asked"), [(np.inf, 2), (-1.0, 1)])
def test_a_slow_predictor_that_completed_a_point_is_not_asked_again(slow, asked, monkeypatch):
    monkeypatch.setattr("dovetail.core.check.SLOW", slow)
    calls = []

    def square(X):
        calls.append(len(X))
        return X**2

    problem = dt.Problem(dt.Mip(cost=[1.0, -1.0], upper=[3.0, 9.0]))
    problem.add_predictor(square, inputs=[0], outputs=[1])
    checker = Checker(problem)
    calls.clear()
    x, violation = checker.completed(np.array([2.0, 0.0]))
    assert x.tolist() == [2.0, 4.0] and violation.within() and len(calls) == asked

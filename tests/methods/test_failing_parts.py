"""Every phase and every fact of auto made to fail, one at a time: the others still find the answer."""

import itertools
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from torch import nn

import dovetail as dt
from dovetail.methods import auto as auto_file
from dovetail.methods import facts as facts_file
from dovetail.methods import phases as phases_file
from dovetail.methods.auto import Auto
from dovetail.methods.facts import LOOKUPS, Facts
from dovetail.methods.phases import PHASES
from dovetail.reformulations.quadratic_blocks import QuadraticForm
from dovetail.run.failures import counted
from tests.conftest import FULL
from tests.contexts import context_of
from tests.small import linear_net
from tests.tree_problems import enumerated

METHOD = Auto(effort=1, tables=False)
STEP = 1 if FULL else 3
"""Every phase, problem and fact at full volume, every third one in each run."""


@pytest.fixture(autouse=True)
def not_strict(monkeypatch):
    monkeypatch.delenv("DOVETAIL_STRICT", raising=False)


def distance(centres):
    """y = sum |x - centre|."""
    eye = np.eye(len(centres))
    both = linear_net(np.vstack([eye, -eye]), np.concatenate([-np.array(centres), centres]))
    return nn.Sequential(both, nn.ReLU(), linear_net(np.ones(2 * len(centres))))


def problem_of(n, predictor, *, cost=0.1, integer=False):
    """The least cost of n inputs in [-1, 1] and of what the predictor says of them."""
    mip = dt.Mip(
        [*np.full(n, cost), 1.0],
        lower=[*np.full(n, -1.0), -99.0],
        upper=[*np.full(n, 1.0), 99.0],
        integer=[*np.full(n, integer), False],
    )
    problem = dt.Problem(mip)
    problem.add_predictor(predictor, np.arange(n), [n])
    return problem


def one_input():
    return problem_of(1, distance([0.5])), 0.05


def many_inputs():
    """More than can be branched over."""
    mean = linear_net(np.full((1, 14), 1.0 / 14))
    return problem_of(14, nn.Sequential(mean, distance([0.5])), cost=0.01), 0.07


def networks(n):
    """The same for n inputs, each with its network, and a row that they share."""
    columns = np.arange(2 * n).reshape(2, n)
    mip = dt.Mip(
        np.repeat([0.1, 1.0], n),
        [[*np.ones(n), *np.zeros(n)]],
        [-np.inf],
        [0.6 * n],
        lower=np.repeat([-1.0, -9.0], n),
        upper=np.repeat([1.0, 9.0], n),
    )
    problem = dt.Problem(mip)
    problem.add_predictor(distance([0.5]), columns[0][:, None], columns[1][:, None])
    return problem, 0.05 * n


def many_networks():
    """Few inputs each, more than can be branched over together."""
    return networks(14)


def equal_blocks():
    """Enough of them to be taken all at once."""
    return networks(50)


def integers():
    """An integer beside a real."""
    problem = problem_of(2, distance([0.4, 0.3]))
    return problem.derived(replace(problem.mip, integer=[True, False, False]), problem.blocks), 0.03 + 0.4


def trees(samples, most=9.0):
    """Trees that read one input each, and a row that the inputs share; the best input of one alone meets its
    part of the row, so that all of them may have it."""
    from sklearn.tree import DecisionTreeRegressor

    X = np.linspace(-1.0, 1.0, 40)[:, None]
    model = DecisionTreeRegressor(max_depth=2, random_state=0).fit(X, np.sin(5.0 * X[:, 0]))
    n = samples
    mip = dt.Mip(
        np.repeat([0.1, 1.0], n),
        [[*np.ones(n), *np.zeros(n)]],
        [0.5 * n],
        [np.inf],
        lower=np.repeat([-1.0, -9.0], n),
        upper=np.repeat([1.0, most], n),
    )
    problem = dt.Problem(mip)
    problem.add_predictor(model, np.arange(n)[:, None], n + np.arange(n)[:, None])
    return problem


def one_tree():
    return trees(1), enumerated(trees(1))


def tied_trees():
    return trees(2), enumerated(trees(2))


def more_trees():
    """Too many samples for boxes over all of them."""
    return trees(5), 5 * enumerated(trees(1))


def no_point():
    """Trees whose values are above what is allowed."""
    return trees(2, most=-2.0), None


def parabola():
    return problem_of(1, QuadraticForm(np.eye(1), np.array([0.5]))), 0.0475


def parabola_and_network():
    problem = dt.Problem(dt.Mip([0.1, 1.0, 1.0], lower=[-1.0, -9.0, -9.0], upper=[1.0, 9.0, 9.0]))
    problem.add_predictor(QuadraticForm(np.eye(1), np.array([0.5])), [0], [1])
    problem.add_predictor(distance([0.0]), [0], [2])
    return problem, 0.25


def classes(net):
    """Raising sample i by deficit[i] turns its class, which is worth value[i], under one limit."""
    n, deficit, value = 4, np.array([0.3, 0.9, 0.5, 0.7]), np.array([1.0, 2.0, 1.2, 1.1])
    limit, eye = 1.3, np.eye(n)
    mip = dt.Mip(
        np.concatenate([np.zeros(2 * n), value]),
        np.vstack([np.hstack([eye, -eye, 0 * eye]), [*np.zeros(n), *np.ones(n), *np.zeros(n)]]),
        np.append(-deficit, -np.inf),
        np.append(-deficit, limit),
        lower=np.repeat([-3.0, 0.0, 0.0], n),
        upper=np.repeat([3.0, 3.0, 1.0], n),
        sense="max",
    )
    problem = dt.Problem(mip)
    columns = np.arange(n)[:, None]
    problem.add_predictor(net, columns, 2 * n + columns, output_type="classification")
    chosen = np.array(list(itertools.product((0, 1), repeat=n)))
    return problem, float(np.max((chosen @ value)[chosen @ deficit <= limit - 1e-2]))


def relu_classes():
    return classes(nn.Sequential(linear_net([[1.0], [-1.0]]), nn.ReLU(), linear_net([1.0, -1.0])))


def smooth_classes():
    return classes(nn.Sequential(linear_net([[2.0], [1.0]]), nn.Tanh(), linear_net([1.0, 0.5])))


PROBLEMS = (
    one_input, many_inputs, many_networks, integers, one_tree, tied_trees, more_trees, no_point, parabola,
    parabola_and_network, relu_classes, smooth_classes, equal_blocks,
)  # fmt: skip


CHECKED = 1e-6
"""What the check forgives each row: a tree may be cut there."""


@cache
def known(make):
    problem, truth = make()
    return problem, truth, Facts((context_of(problem), METHOD))


def solved(make, method=METHOD):
    return dt.solve(known(make)[0], method, time_limit=600.0, log=False)


def fails(*_, **__):
    raise RuntimeError("made to fail")


class Failing:
    """Fails at once, or after another method has done its work."""

    name = "failing"

    def __init__(self, after=None):
        self.after = after

    def solve(self, context):
        if self.after is not None:
            self.after.solve(context)
        raise RuntimeError("made to fail")


def verified(make, result, *, proved=True, failed=True):
    """The same answer, checked and proved, whatever failed."""
    problem, truth, _ = known(make)
    if failed:
        assert {failure.error for failure in result.failures} == {"RuntimeError"}
        assert "failed, and the solve continued without: " in result.message
        assert "(RuntimeError: made to fail)" in result.message
    if truth is None:
        assert result.status == "infeasible" and result.x is None
        return
    assert dt.check(problem, result.x).within()
    near = pytest.approx(truth, abs=2 * CHECKED * len(result.x))
    assert result.objective == near
    if result.bound is not None:
        assert problem.mip.sign * (result.bound - truth) <= CHECKED * len(result.x)
    assert result.status in (("optimal",) if proved else ("optimal", "feasible"))
    assert result.status == "feasible" or abs(result.bound - truth) <= 2 * result.allowed_gap


@pytest.mark.parametrize("number", range(0, len(PHASES), STEP), ids=lambda k: PHASES[k].name)
def test_a_phase_that_fails(number, monkeypatch):
    """It comes first, on a problem that it is meant for, if there is one here."""
    phase = PHASES[number]
    make = next((make for make in PROBLEMS if phase.suits(known(make)[2])), one_input)
    failing = replace(phase, applies=lambda facts: True, method=lambda options: Failing())
    rest = [other for other in PHASES if other is not phase]
    monkeypatch.setattr(phases_file, "PHASES", (failing, *rest))
    result = solved(make)
    assert [failure.part for failure in result.failures] == [phase.name]
    verified(make, result, proved=phase.name != "branching")


@pytest.mark.parametrize("make", PROBLEMS[::STEP])
def test_phases_that_all_fail_after_their_work(make, monkeypatch):
    """Points and bounds that they found before stand."""

    def failing(phase):
        return replace(phase, method=lambda options: Failing(phase.method(options)))

    monkeypatch.setattr(phases_file, "PHASES", tuple(failing(phase) for phase in PHASES))
    result = solved(make)
    if make is no_point:  # which is proved before any phase
        assert (result.status, result.failures) == ("infeasible", ())
    else:
        assert result.failures
        verified(make, result)


@pytest.mark.parametrize("name", list(LOOKUPS)[::STEP])
def test_a_fact_that_fails(name, monkeypatch):
    """On a problem where it says something, if there is one here; a solve may end before it is asked for."""
    nothing = getattr(Facts(), name)
    make = next((m for m in PROBLEMS if getattr(known(m)[2], name) != nothing), one_input)
    monkeypatch.setitem(LOOKUPS, name, fails)
    facts, part = Facts((context_of(known(make)[0]), METHOD)), f"fact: {name.replace('_', ' ')}"
    with counted(lambda text: None) as failures:
        assert getattr(facts, name) == getattr(facts, name) == nothing
    assert [failure.part for failure in failures] == [part]
    result = solved(make)
    assert {failure.part for failure in result.failures} <= {part}
    verified(make, result, proved=name != "branched", failed=bool(result.failures))


def test_all_facts_that_fail(monkeypatch):
    """Descents need none, and are all that is left."""
    for name in LOOKUPS:
        monkeypatch.setitem(LOOKUPS, name, fails)
    problem, truth, _ = known(one_input)
    result = solved(one_input)
    assert {failure.part for failure in result.failures} <= {f"fact: {n.replace('_', ' ')}" for n in LOOKUPS}
    assert result.status in ("feasible", "optimal") and dt.check(problem, result.x).within()
    assert result.objective == pytest.approx(truth, abs=1e-6)
    assert f"and {len(result.failures) - 3} more" in result.message


def test_facts_are_found_out_when_a_phase_asks(monkeypatch):
    """The host proves what descents find: what later phases would have to know is never looked at."""
    asked = []

    def noted(name, look_up):
        return lambda at: asked.append(name) or look_up(at)

    for name, look_up in LOOKUPS.items():
        monkeypatch.setitem(LOOKUPS, name, noted(name, look_up))
    problem = dt.Problem(dt.Mip(cost=[0.0, 0.0, 1.0], lower=[-1.0, -1.0, 0.0], upper=[1.0, 1.0, 9.0]))
    problem.add_predictor(distance([0.4, 0.3]), [0, 1], [2])
    result = dt.solve(problem, METHOD, log=False)
    assert (result.status, result.bound_source) == ("optimal", "host")
    assert len(asked) == len(set(asked))
    assert not {"unstable", "curves"} & set(asked)


def test_many_blocks_are_taken_one_by_one_where_all_at_once_fails(monkeypatch):
    for file in (facts_file, phases_file):
        monkeypatch.setattr(file, "MANY_BLOCKS", 40)
    phases = [replace(p, method=lambda options: Failing()) if p.of_blocks else p for p in PHASES]
    monkeypatch.setattr(phases_file, "PHASES", tuple(phases))
    result = solved(equal_blocks)
    names = [failure.part for failure in result.failures]
    assert names == ["many blocks"]
    verified(equal_blocks, result)


def test_a_phase_that_fails_without_a_point(monkeypatch):
    """Nothing else is there to find one."""
    monkeypatch.setattr(
        phases_file, "PHASES", (replace(PHASES[0], applies=bool, method=lambda _: Failing()),)
    )
    problem, _, _ = known(no_point)
    result = dt.solve(problem, replace(METHOD, exact=False), log=False)
    assert (result.status, result.stop_reason, result.x) == ("error", "error", None)
    assert result.message.startswith("a part of the solve failed before any candidate passed the check")


REWRITTEN = {
    "rows on logits": (auto_file, "_by_logits", one_input),
    "trees as rows": (auto_file, "_by_tree_rows", one_input),
    "tables": (auto_file, "_by_tables", integers),
    "scaling": (auto_file.ScaledProblem, "of", one_input),
}


@pytest.mark.parametrize("name", REWRITTEN)
def test_a_reformulation_that_fails(name, monkeypatch):
    where, what, make = REWRITTEN[name]
    known(make)
    monkeypatch.setattr(where, what, fails)
    result = solved(make, replace(METHOD, tables=True, scaling="none" if name == "scaling" else "box"))
    assert name in [failure.part for failure in result.failures]
    verified(make, result)


def test_a_table_whose_mip_fails(monkeypatch):
    """The problem goes to the other parts as it was given."""
    problem = problem_of(2, distance([0.4, 0.3]), integer=True)
    monkeypatch.setattr(auto_file.ExactMip, "solve", fails)
    result = dt.solve(problem, Auto(effort=1), log=False)
    assert "exact MIP" in [failure.part for failure in result.failures]
    assert dt.check(problem, result.x).within()
    assert result.objective == pytest.approx(0.7, abs=1e-6)


@pytest.mark.parametrize("error", [MemoryError("none left"), dt.ModelError("crossed"), dt.EngineError("no")])
def test_whatever_a_phase_fails_by(error, monkeypatch):
    class Raises(Failing):
        def solve(self, context):
            raise error

    failing = replace(PHASES[0], applies=lambda facts: True, method=lambda options: Raises())
    monkeypatch.setattr(phases_file, "PHASES", (failing, *PHASES[1:]))
    result = solved(one_input)
    assert [failure.error for failure in result.failures] == [type(error).__name__]
    assert result.status == "optimal" and result.objective == pytest.approx(0.05, abs=1e-6)


@pytest.mark.parametrize("where", ["phase", "fact", "reformulation"])
def test_strict_mode_raises(where, monkeypatch):
    monkeypatch.setenv("DOVETAIL_STRICT", "1")
    if where == "phase":
        failing = replace(PHASES[0], applies=lambda facts: True, method=lambda options: Failing())
        monkeypatch.setattr(phases_file, "PHASES", (failing, *PHASES[1:]))
    elif where == "fact":
        monkeypatch.setitem(LOOKUPS, "blocks", fails)
    else:
        monkeypatch.setattr(auto_file, "_by_logits", fails)
    with pytest.raises(RuntimeError, match="made to fail"):
        solved(one_input)

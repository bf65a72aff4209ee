"""Writing a problem another way does not change what is found: the search takes the same steps."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import dovetail as dt
from dovetail_study import zoo
from dovetail_study.zoo.rewriting import RULES, Draft, rewritten
from tests.conftest import FULL
from tests.differential.instances import make
from tests.differential.judging import as_problem
from tests.differential.truth import truth
from tests.writing import FORMS, Writing, by_levels, net_of

few = settings(max_examples=60 if FULL else 2, deadline=None, derandomize=True)
METHOD = dt.DualDecomposition(iterations=4)
HOST_RULES = [name for name in RULES if not name.startswith(("as ", "networks"))]
"""Rules that change the host; the others have a test of their own."""


def solve(instance, **changes):
    return dt.solve(as_problem(replace(instance, **changes)), METHOD, time_limit=600.0, log=False)


@few
@given(st.integers(0, 10_000), st.integers(-3, 3))
def test_check_does_not_care_for_the_order_of_columns(seed, power):
    instance = make(seed)
    problem = as_problem(instance)
    rng = np.random.default_rng(seed)
    x = problem.predict(
        np.concatenate([instance.random_decisions(1, rng)[0], np.zeros(problem.outputs.size)])
    )
    order = rng.permutation(problem.mip.n_columns)
    place = np.argsort(order)
    nets = [replace(net, inputs=place[net.inputs], outputs=place[net.outputs]) for net in instance.nets]
    shuffled = replace(
        instance,
        cost=instance.cost[order],
        A=instance.A[:, order],
        lower=instance.lower[order],
        upper=instance.upper[order],
        integer=instance.integer[order],
        nets=nets,
    )
    there, here = dt.check(as_problem(shuffled), x[order]), dt.check(problem, x)
    assert there.rows.amount == pytest.approx(here.rows.amount, abs=1e-12)
    assert there.bounds.amount == here.bounds.amount
    assert there.prediction.amount == pytest.approx(here.prediction.amount, abs=1e-12)
    scale = 2.0**power
    scaled = replace(
        instance,
        A=instance.A * scale,
        row_lower=instance.row_lower * scale,
        row_upper=instance.row_upper * scale,
    )
    assert dt.check(as_problem(scaled), x).rows.amount == here.rows.amount * scale


def l1_ball(form, seed, price):
    """min f(x) + price |x - w|_1 over |x - w|_1 <= 1, with the distance written in several ways."""
    d, width, rng = 24 if FULL else 12, 16 if FULL else 8, np.random.default_rng(seed)
    w, one, nothing = rng.uniform(0.2, 0.8, d), np.eye(d), np.zeros((d, d))
    total, none = np.ones((1, d)), np.zeros((1, d))
    endless, free = np.full(d, np.inf), np.zeros(d)
    if form == "split":
        A = np.block([[one, -one, one], [none, total, total]])
        lower, upper = np.r_[w, -np.inf], np.r_[w, 1.0]
        columns = [(free, 1 - w, price), (free, w, price)]
    elif form == "epigraph":
        A = np.block([[-one, one], [one, one], [none, total]])
        lower, upper = np.r_[-w, w, -np.inf], np.r_[endless, endless, 1.0]
        columns = [(free, endless, price)]
    elif form == "other units":
        A = np.block([[-2.5 * one, 2.5 * one], [-0.3 * one, -0.3 * one], [none, -4.0 * total]])
        lower, upper = np.r_[-2.5 * w, -endless, -4.0], np.r_[endless, -0.3 * w, np.inf]
        columns = [(free, np.full(d, 3.0), price)]
    else:  # the difference in a column of its own
        A = np.block([[one, nothing, -one], [nothing, one, -one], [nothing, one, one], [none, total, none]])
        lower, upper = np.r_[w, free, free, -np.inf], np.r_[w, endless, endless, 1.0]
        columns = [(free, endless, price), (-endless, endless, 0.0)]
    mip = dt.Mip(
        np.concatenate([free, *(np.full(d, cost) for _, _, cost in columns), [1.0]]),
        np.c_[A, np.zeros(len(A))],
        lower,
        upper,
        np.concatenate([free, *(low for low, _, _ in columns), [-np.inf]]),
        np.concatenate([np.ones(d), *(high for _, high, _ in columns), [np.inf]]),
    )
    torch.manual_seed(seed)
    net = torch.nn.Sequential(
        torch.nn.Linear(d, width),
        torch.nn.ReLU(),
        torch.nn.Linear(width, width),
        torch.nn.ReLU(),
        torch.nn.Linear(width, 1),
    ).double()
    with torch.no_grad():
        net[0].weight *= 3
        net[2].weight *= 3
    problem = dt.Problem(mip)
    problem.add_predictor(net, np.arange(d), [mip.n_columns - 1])
    return problem


def in_two_inequalities(problem):
    """Each side of each row in a row of its own, the upper ones in other units and the other way round."""
    mip, block = problem.mip, problem.blocks[0]
    A, none = mip.A.toarray(), np.full(mip.n_rows, np.inf)
    again = dt.Problem(
        dt.Mip(
            mip.cost, np.r_[A, -3.0 * A], np.r_[mip.row_lower, -3.0 * mip.row_upper], np.r_[none, none],
            mip.lower, mip.upper,
        )
    )  # fmt: skip
    again.add_predictor(block.predictor, block.inputs[0], block.outputs[0])
    return again


@pytest.mark.parametrize("seed", range(6) if FULL else [1])
@pytest.mark.parametrize("price", [0.0, 0.5] if FULL else [0.5])
def test_an_l1_ball_is_proved_with_the_same_work_however_it_is_written(seed, price):
    found, lps = [], []
    forms = [l1_ball(form, seed, price) for form in ("split", "epigraph", "other units", "behind a column")]
    for problem in [*forms, in_two_inequalities(forms[0]), in_two_inequalities(forms[1])]:
        result = dt.solve(problem, gap=1e-6, time_limit=600.0, log=False)
        assert result.status == "optimal"
        found.append(result.objective)
        lps.append(result.work.lps)  # of boxes, and of neurons before the first division
    assert found == pytest.approx([found[0]] * len(found), abs=1e-5)
    assert max(lps) <= 2 * min(lps)


def doses_by_levels(form, seed, *, even):
    """Five doses with given strengths and a common limit; one response is best, another one is limited."""
    rng, w, count = np.random.default_rng(seed), Writing(), 5
    kinds = ([0.0, 2.5, 5.0, 7.5, 10.0, 12.5], [1.5, 4.0, 6.5, 9.0, 11.5])
    if not even:
        kinds = ([0.0, 5.0, 20.0, 35.0, 80.0], [4.0, 10.0, 28.0, 60.0])
    levels, unit = [kinds[k % 2] for k in range(count)], 8.0 if even else 40.0
    x = [by_levels(w, some, form) for some in levels]
    for j in x:
        w.cost[j] = rng.uniform(0.015, 0.045)
    best, limited = w.column(-np.inf, np.inf, 1.0), w.column(-np.inf, 0.3)
    most = sum(some[-1] for some in levels)
    w.row(dict.fromkeys(x, 1.0), 0.1 * most, 0.6 * most)
    w.row({x[0]: 1.0, x[1]: -0.5, x[2]: 1.0}, -np.inf, 10.0 if even else 40.0)
    problem = w.problem()
    problem.add_predictor(net_of(count, seed, scale=3.0 / unit), x, [best])
    problem.add_predictor(net_of(count, seed + 77, scale=2.0 / unit), x, [limited])
    return problem


def ramps(form, seed, *, budget):
    """Settings through some periods; what a period yields depends on the last one, and each change costs."""
    rng, w, count = np.random.default_rng(seed), Writing(), 5 if FULL else 4
    u = [w.column(0.0, 1.0) for _ in range(count)]
    y = [w.column(-np.inf, np.inf, -cost) for cost in rng.uniform(0.5, 1.5, count)]
    total = {}
    for t in range(1, count):
        price, change = 0.2 + 0.02 * t, {u[t]: 1.0, u[t - 1]: -1.0}
        if form == "two rows":
            a = w.column(0.0, np.inf, price)
            w.row(change | {a: -1.0}, -np.inf, 0.0)
            w.row(change | {a: 1.0}, 0.0, np.inf)
        elif form == "split":
            a, b = w.column(0.0, np.inf, price), w.column(0.0, np.inf, price)
            w.row(change | {a: -1.0, b: 1.0}, 0.0, 0.0)
            total[b] = 1.0
        elif form == "split and joined":
            p, q, a = w.column(0.0, np.inf), w.column(-np.inf, 0.0), w.column(-np.inf, np.inf, price)
            w.row(change | {p: -2.0, q: -2.0}, 0.0, 0.0)
            w.row({a: 1.0, p: -2.0, q: 2.0}, 0.0, 0.0)
        else:
            d, a = w.column(-np.inf, np.inf), w.column(0.0, np.inf, price)
            w.row(change | {d: -1.0}, 0.0, 0.0)
            w.row({d: 2.0, a: -2.0}, -np.inf, 0.0)
            w.row({d: -0.5, a: -0.5}, -np.inf, 0.0)
        total[a] = 1.0
    if budget:
        w.row(total, -np.inf, 0.6)
    problem = w.problem()
    read = [[u[t], u[abs(t - 1)]] for t in range(count)]
    problem.add_predictor(net_of(2, seed, scale=4.0), read, np.array(y)[:, None])
    return problem


FAMILIES = {
    "doses, even": (partial(doses_by_levels, even=True), FORMS),
    "doses": (partial(doses_by_levels, even=False), ("all", "all but the least", "steps", "index")),
    "ramps": (partial(ramps, budget=False), ("two rows", "split", "split and joined", "difference")),
    "limited ramps": (partial(ramps, budget=True), ("two rows", "split", "split and joined", "difference")),
}
"""Problems that nothing was tuned on, and the ways to write them."""


@pytest.mark.parametrize("seed", range(6) if FULL else [0])
@pytest.mark.parametrize("family", FAMILIES if FULL else ["ramps"])
def test_levels_and_changes_are_proved_with_the_same_work_however_they_are_written(family, seed):
    build, forms = FAMILIES[family]
    results = {form: dt.solve(build(form, seed), time_limit=600.0, log=False) for form in forms}
    assert {str(result.status) for result in results.values()} == {"optimal"}
    values = [result.objective for result in results.values()]
    assert max(values) - min(values) <= 2e-4 * max(1.0, abs(min(values)))
    work = {form: result.work.nodes + result.work.lps for form, result in results.items()}
    assert max(work.values()) <= max(FEW, 2 * min(work.values())), work


@pytest.mark.parametrize("seed", range(400) if FULL else (0, 1, 2, 4, 5, 6))
def test_random_problems_have_their_enumerated_optimum_however_they_are_written(seed):
    instance, rng = make(seed), np.random.default_rng(seed)
    facts, draft = truth(instance), Draft.of(as_problem(instance))
    used = 0
    for name in rng.permutation(HOST_RULES):
        used += RULES[name](draft, rng) if used < 4 else 0
    problem = draft.problem()
    result = dt.solve(problem, dt.Auto(effort=3), gap=1e-6, log=False)
    sign = 1.0 if instance.sense == "min" else -1.0
    if facts.unbeatable is None:
        assert result.x is None and result.status in ("infeasible", "no_solution")
        return
    assert result.status != "infeasible"
    least = sign * facts.unbeatable
    if result.bound is not None and facts.attained is not None:
        assert problem.mip.sign * result.bound <= sign * facts.attained + 1e-5 * max(1.0, abs(least))
    if result.x is not None:
        assert problem.mip.sign * result.objective >= least - 1e-5 * max(1.0, abs(least))
    if result.status == "optimal" and facts.attained is not None:
        assert problem.mip.sign * result.objective <= sign * facts.attained + 1e-5 * max(1.0, abs(least))


QUICK = ("diet", "facilities-trees")
"""Kinds whose proofs take tenths of a second; each has its share of the rules."""
MAY_WAIT = ("networks joined",)
"""A rule that changes how many networks there are: a proof may take more work until one method branches over
several networks as over one."""
FEW = 100
"""Nodes and LPs: with fewer of them twice as many are no matter."""


@pytest.mark.parametrize("kind", zoo.KINDS if FULL else QUICK)
def test_a_problem_of_the_zoo_is_proved_with_the_same_work_however_it_is_written(kind):
    """Same status and optimum in every form, and at most twice the work of the best form in nearly all.

    `python -m benchmarks.invariance` prints the table; this test allows one form in ten to take more.
    """
    problem = zoo.build(kind, 1, 0)
    forms = {"as given": problem}
    for name in RULES if FULL else list(RULES)[QUICK.index(kind) :: 3 * len(QUICK)]:
        other = rewritten(problem, [name]) if name not in MAY_WAIT and (FULL or name != "as keras") else None
        if other is not None:
            forms[name] = other
    results = {name: dt.solve(form, time_limit=600.0, log=False) for name, form in forms.items()}
    values = {name: forms[name].mip.sign * result.objective for name, result in results.items()}
    assert {str(result.status) for result in results.values()} == {"optimal"}
    best = min(values.values())
    assert all(value <= best + 2e-4 * max(1.0, abs(best)) for value in values.values()), values
    work = {name: result.work.nodes + result.work.lps for name, result in results.items()}
    more = [name for name, done in work.items() if done > max(FEW, 2 * min(work.values()))]
    assert len(more) <= len(work) // 10, work

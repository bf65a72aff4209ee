"""Binaries that say in which state something is come to one form, with the same points and objective."""

import itertools

import numpy as np
import pytest

from dovetail.bounds.box import propagate
from dovetail.core.check import check
from dovetail.reformulations.presolve import Presolve
from dovetail.reformulations.reformulated import Reformulated
from tests.conftest import sample
from tests.writing import FORMS, Writing, by_levels, net_of

EVEN, UNEVEN, WHOLE = [0.3, 0.8, 1.3, 1.8], [0.0, 5.0, 20.0, 35.0], [-1.0, 0.0, 1.0, 2.0]


def of_levels(form, levels, *, reads, price=0.0):
    """min y + cost of two columns with given values, y = f of one of them, rows over both."""
    w = Writing()
    one, two = by_levels(w, levels, form), by_levels(w, levels, form)
    y = w.column(-np.inf, np.inf, 1.0)
    w.cost[one], w.cost[two] = 0.2, -0.1
    other = w.column(0, 2, 0.3, integer=True)
    w.row({one: 1.0, two: 2.0, other: 1.0}, -np.inf, 2.0 * levels[-1])
    w.row({one: 1.0, two: -1.0}, -1.5 * levels[-1], np.inf)
    if price:  # a binary that is more than a level
        w.cost[two + 1] = price
    problem = w.problem()
    problem.add_predictor(net_of(1, 0), [one if reads else other], [y])
    return problem


def presolved(problem):
    made = Presolve().apply(Reformulated.start(problem, propagate(problem.mip.minimised())))
    return Reformulated.start(problem, propagate(problem.mip.minimised())) if made is None else made


def points(problem):
    """All points with whole integers; continuous columns are those that equations and the predictor give."""
    mip = problem.mip
    whole = np.flatnonzero(mip.integer)
    values = [np.arange(mip.lower[j], mip.upper[j] + 1.0) for j in whole]
    free = np.setdiff1d(np.flatnonzero(~mip.integer), problem.outputs)
    equations = mip.row_lower == mip.row_upper
    A, b = mip.A.toarray()[equations], mip.row_lower[equations]
    X = np.zeros((int(np.prod([value.size for value in values])), mip.n_columns))
    X[:, whole] = np.array(np.meshgrid(*values)).reshape(whole.size, -1).T
    if free.size:
        X[:, free] = (b - X[:, whole] @ A[:, whole].T) @ np.linalg.pinv(A[:, free]).T
    activity = X @ mip.A.toarray().T
    inside = np.all((activity >= mip.row_lower - 1e-7) & (activity <= mip.row_upper + 1e-7), axis=1)
    for x in X[inside]:
        x = problem.predict(x)
        assert not np.isnan(x).any()
        if check(problem, x).within(1e-7):
            yield x


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("levels", [EVEN, UNEVEN, WHOLE])
@pytest.mark.parametrize("reads", sample([True, False]))
def test_every_point_of_one_form_is_one_of_the_other(form, levels, reads):
    if levels is UNEVEN and form in ("integer", "digits", "index"):  # of the last there are too many points
        return
    given = of_levels(form, levels, reads=reads)
    made = presolved(given)
    before = {round(given.mip.objective(x), 7) for x in points(given)}
    inner = list(points(made.problem))
    assert {round(made.problem.mip.objective(z), 7) for z in inner} == before and before
    for z in inner:
        x = made.restrict(z)
        assert check(given, x).within(1e-7)
        assert given.mip.objective(x) == pytest.approx(made.problem.mip.objective(z), abs=1e-9)
        assert made.lift(x) == pytest.approx(z, abs=1e-9)
    for x in itertools.islice(points(given), 0, None, 3):
        z = made.lift(x)
        assert check(made.problem, z).within(1e-7)
        assert made.problem.mip.objective(z) == pytest.approx(given.mip.objective(x), abs=1e-9)


@pytest.mark.parametrize("levels", [EVEN, WHOLE])
@pytest.mark.parametrize("reads", [True, False])
def test_levels_that_are_equally_far_apart_are_an_integer_in_every_form(levels, reads):
    sizes = [presolved(of_levels(form, levels, reads=reads)).problem.mip for form in FORMS]
    assert len({(mip.A.shape, int(mip.integer.sum())) for mip in sizes}) == 1


def test_a_chain_with_other_levels_becomes_binaries_of_which_one_is_1():
    made = []
    for form in ("all but the least", "steps"):
        w = Writing()
        x, y = by_levels(w, UNEVEN, form), w.column(-np.inf, np.inf, 1.0)
        problem = w.problem()
        problem.add_predictor(net_of(1, 0), [x], [y])
        made.append(presolved(problem).problem.mip)
    assert np.array_equal(made[0].A[[1, 0]].toarray(), made[1].A[[0, 1]].toarray())


def test_a_binary_that_costs_keeps_its_group():
    given = of_levels("all", EVEN, reads=True, price=0.7)
    assert presolved(given).problem.mip.integer.sum() >= 4
    values = sorted(given.mip.objective(x) for x in points(given))
    made = presolved(given)
    assert sorted(made.problem.mip.objective(z) for z in points(made.problem)) == pytest.approx(values)


def test_chains_with_branches_and_circles_keep_their_points():
    w = Writing()
    x, y = w.column(0, 2, integer=True), w.column(-np.inf, np.inf, 1.0)
    b = [w.column(0, 1, 0.1 * k, integer=True) for k in range(9)]
    for one, two in ((0, 1), (1, 2), (2, 3), (3, 1), (4, 5), (4, 6), (7, 6), (8, 7)):
        w.row({b[one]: 1.0, b[two]: -1.0}, 0.0, np.inf)
    w.row({j: float(k + 1) for k, j in enumerate(b)} | {x: 1.0}, 4.0, 17.0)
    given = w.problem()
    given.add_predictor(net_of(1, 0), [x], [y])
    made = presolved(given)
    values = sorted(given.mip.objective(x) for x in points(given))
    assert sorted(made.problem.mip.objective(z) for z in points(made.problem)) == pytest.approx(values)
    assert all(check(given, made.restrict(z)).within(1e-7) for z in points(made.problem))

"""Boxes as columns: bounds against enumeration, least uses against true points, a small water plant."""

import numpy as np
import pytest
import scipy.sparse as sp

import dovetail as dt
from dovetail.bounds.box import Box
from dovetail.decomposition.choice import Columns
from dovetail.methods.cell_columns import CellColumns
from dovetail.methods.cell_columns.frontier import Frontier, tree_components
from dovetail.methods.exact_mip import ExactMip
from dovetail.reformulations.reformulated import Reformulated, reformulate
from dovetail.reformulations.tree_rows import TreeSplits
from dovetail.run.engine import MipStatus
from dovetail.structure.components import components
from dovetail.structure.structure import structure_of
from tests.conftest import FULL
from tests.contexts import context_of
from tests.tree_problems import enumerated, random_problem

SEEDS = 600 if FULL else 20
"""That are looked through for problems of two samples."""


def plant(samples=4, budget=1.5, seed=3, least=0.0):
    """Samples of four features that may be moved, at a budget for each feature, to be of class 1."""
    from sklearn.ensemble import GradientBoostingClassifier

    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 4))
    y = (X[:, 0] * X[:, 1] + np.abs(X[:, 2]) + 0.3 * X[:, 3] > 0.8).astype(int)
    model = GradientBoostingClassifier(n_estimators=4, max_depth=3, random_state=0).fit(X, y)
    given = X[model.predict(X) == 0][:samples]
    n, d = given.shape
    eye, per = sp.eye_array(n * d), sp.kron(np.ones((1, n)), sp.eye_array(d))
    A = sp.block_array([[sp.csr_array((n * d, n)), eye, -eye, eye], [None, None, per, per]])
    size = n * d
    mip = dt.Mip(
        np.repeat([1.0, 0.0], [n, 3 * size]),
        A,
        np.concatenate([given.ravel(), np.full(d, -np.inf)]),
        np.concatenate([given.ravel(), np.full(d, 0.1 * budget)]),
        np.repeat([least, -np.inf, 0.0], [n, size, 2 * size]),
        np.repeat([1.0, np.inf], [n, 3 * size]),
        sense="max",
    )
    problem = dt.Problem(mip)
    treated = n + np.arange(size).reshape(n, d)
    problem.add_predictor(model, treated, np.arange(n)[:, None], output_type="classification")
    return problem


@pytest.fixture(scope="module")
def water():
    return plant()


def coupled_seeds(most):
    """Of problems with two samples that share no input."""
    for seed in range(most):
        block = random_problem(seed).blocks[0]
        if block.samples == 2 and block.inputs[1, 0] != block.inputs[0, 0]:
            yield seed


def test_nothing_is_claimed_that_enumeration_refutes():
    proved = 0
    for seed in coupled_seeds(SEEDS):
        problem = random_problem(seed)
        result = dt.solve(problem, CellColumns(), log=False)
        best, sign = enumerated(problem), problem.mip.sign
        if best is None:
            assert result.x is None, seed
            continue
        room = 1e-5 * (1.0 + abs(best))
        if result.bound is not None:
            assert sign * result.bound <= sign * best + room, seed
        if result.x is not None:
            assert sign * result.objective >= sign * best - room, seed
        proved += result.status == "optimal"
    assert proved


def test_a_box_uses_no_more_than_its_points(water):
    context = context_of(water)
    trees, parts = context.once(structure_of).loose_trees, components(water)
    h = parts.sides(trees.host).limit
    rng = np.random.default_rng(0)
    for component in tree_components(trees, parts):
        frontier = Frontier(component, seed=0, threads=1)
        prices = np.append(1.0, np.full(h.size, 0.5))
        rest = frontier.least_active(prices, context.budget)
        for _ in range(6):
            frontier.refine(4, prices, rest, context.budget)
        for _ in range(20):
            z = true_point(component, rng)
            used = component.terms @ z
            assert np.any(np.all(frontier.use <= used + 1e-9, axis=1))


def true_point(component, rng):
    """A sample moved anywhere within its box, what that takes, and its class."""
    trees = component.trees
    host, z = trees.host, np.zeros(trees.host.n_columns)
    inputs, outputs = trees.problem.inputs, trees.problem.outputs
    z[inputs] = rng.uniform(host.lower[inputs], host.upper[inputs])
    z[outputs] = trees.problem.predict(z)[outputs]
    for row in range(host.n_rows):
        entries = host.A[[row]].tocoo()
        x, up, down = sorted(entries.col)
        moved = z[x] - 0.5 * (host.row_lower[row] + host.row_upper[row])
        z[up], z[down] = max(moved, 0.0), max(-moved, 0.0)
    return z


class AsRows:
    """One MIP, with a binary for each cut."""

    name = "as rows"

    def solve(self, context):
        """By an engine."""
        trees = context.once(structure_of).loose_trees
        given = Reformulated.start(trees.problem, Box(trees.host.lower, trees.host.upper))
        return ExactMip(reformulate(given, (TreeSplits(trees),))).solve(context)


def test_a_small_plant_is_proved_as_others_prove_it(water):
    ours = dt.solve(water, CellColumns(), log=False)
    theirs = dt.solve(water, AsRows(), log=False)
    assert ours.status == "optimal"
    assert ours.objective == pytest.approx(theirs.bound, rel=1e-3)
    assert 0 < ours.objective < 4


def test_that_there_is_no_point_is_proved_and_ends_the_solve():
    """All samples are to be of class 1, and none may be moved."""
    result = dt.solve(plant(budget=0.0, least=1.0), CellColumns(), time_limit=60.0, log=False)
    assert result.x is None and result.status == "infeasible"
    assert "no combination of boxes satisfies" in result.message


def test_an_lp_that_ends_early_proves_nothing(water, monkeypatch):
    monkeypatch.setattr(Columns, "relaxed", lambda *given, level_at=None: (MipStatus.LIMIT, None))
    result = dt.solve(water, CellColumns(), time_limit=60.0, log=False)
    assert "open, " in result.message and "no choice" not in result.message


def test_without_components_it_says_so():
    problem = random_problem(3)
    assert "no components" in dt.solve(problem, CellColumns(), log=False).message


def test_auto_takes_it_where_samples_share_rows(water):
    result = dt.solve(water, log=False)
    assert result.status == "optimal"
    assert "cell columns" in {row.part for row in result.trace}

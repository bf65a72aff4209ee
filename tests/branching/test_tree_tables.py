"""Tables of trees: rows that hold at every point, and products of what trees predict against all cells."""

import itertools

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp
from sklearn.ensemble import GradientBoostingRegressor

import dovetail as dt
from dovetail.bounds.box import propagate
from dovetail.branching.table_rows import TableRows
from dovetail.branching.tree import Node, Tree
from dovetail.branching.tree_tables import TablePart, tree_tables
from dovetail.methods.branching_model import model_of
from dovetail.reformulations.chained_networks import TakenApart
from dovetail.reformulations.reformulated import Reformulated
from dovetail.run.budget import Budget
from dovetail.structure.structure import Structure
from tests.conftest import FULL
from tests.predictors.trees import models

WAYS = (
    "one predictor",
    "two predictors",
    "price of a level",
    "demand of another column",
    "least of the negative",
)


def demand(rng, trees=3):
    """Of a price and a promotion."""
    X = np.column_stack([rng.uniform(1.0, 5.0, 60), rng.integers(0, 2, 60)])
    y = 9.0 - 1.6 * X[:, 0] + 2.0 * X[:, 1] + rng.normal(0.0, 1.0, 60)
    return GradientBoostingRegressor(n_estimators=trees, max_depth=2, random_state=0).fit(X, y)


def shops(seed, way):
    """Two shops with a price, a promotion and a demand each, that share a stock; and what is sold, brings."""
    rng = np.random.default_rng(seed)
    predictors = [demand(rng), demand(rng)]
    names = ["price", "promoted", "sold", "earned", "level", "units"]
    cost = np.tile([0.0, -rng.uniform(0.0, 2.0), -rng.uniform(0.0, 1.0), 1.0, 0.0, 0.0], 2)
    lower, upper = (
        np.tile([1.0, 0.0, -50.0, -500.0, 0.0, -50.0], 2),
        np.tile([5.0, 1.0, 50.0, 500.0, 8.0, 50.0], 2),
    )
    A, low, high = np.zeros((4 if way in WAYS[2:4] else 2, 12)), [-np.inf, rng.uniform(2.0, 7.0)], []
    A[0, [2, 8]], A[1, [0, 6]] = 1.0, 1.0
    high = [rng.uniform(5.0, 12.0), np.inf]
    if way == "price of a level":
        for k in range(2):
            A[2 + k, [6 * k, 6 * k + 4]] = 1.0, -0.5
        low, high = [*low, 1.0, 1.0], [*high, 1.0, 1.0]
    if way == "demand of another column":
        for k in range(2):
            A[2 + k, [6 * k + 2, 6 * k + 5]] = 1.0, -0.1
        low, high, lower[5::6], upper[5::6] = [*low, 0.0, 0.0], [*high, 0.0, 0.0], -500.0, 500.0
        cost[3::6] = 0.1
        lower[3::6], upper[3::6] = -5e3, 5e3
    negative = way == "least of the negative"
    mip = dt.Mip(
        -cost if negative else cost, A, low, high, lower, upper, np.tile([0, 1, 0, 0, 1, 0], 2).astype(bool),
        sense="min" if negative else "max", names=[f"{name}{k}" for k in range(2) for name in names],
    )  # fmt: skip
    problem = dt.Problem(mip)
    for k, predictor in enumerate(predictors):
        price, promoted, sold, earned, _, units = range(6 * k, 6 * k + 6)
        if way in ("two predictors", "demand of another column"):
            problem.add_predictor(predictor, [price, promoted], [sold])
            factor = units if way == "demand of another column" else sold
            problem.add_predictor(dt.Product(None, 0, 1), [factor, price], [earned])
        else:
            problem.add_predictor(dt.Product(predictor, 0, 0, keep=True), [price, promoted], [sold, earned])
    return problem, predictors


def best_of(problem, predictors, way):
    """By every choice of the cells, which are closed: earned is then a number times the price."""
    mip, best = problem.mip.minimised(), np.inf
    cells = []
    for predictor in predictors:
        trees = [tree.tree_ for tree in predictor.estimators_.ravel()]
        cuts = np.unique(np.concatenate([t.threshold[t.feature == 0] for t in trees]))
        cuts = cuts[(cuts > 1.0) & (cuts < 5.0)]
        ends = zip(np.append(1.0, cuts), np.append(cuts, 5.0), strict=True)
        cells.append([(a, b, p) for (a, b), p in itertools.product(ends, (0.0, 1.0))])
    for choice in itertools.product(*cells):
        lower, upper = mip.lower.copy(), mip.upper.copy()
        rows, sides = [mip.A.toarray()], [mip.row_lower, mip.row_upper]
        for k, ((a, b, p), predictor) in enumerate(zip(choice, predictors, strict=True)):
            price, promoted, sold, earned = range(6 * k, 6 * k + 4)
            value = predictor.predict([[0.5 * (a + b), p]])[0]
            for column, ends in ((price, (a, b)), (promoted, (p, p)), (sold, (value, value))):
                lower[column], upper[column] = max(lower[column], ends[0]), min(upper[column], ends[1])
            row = np.zeros(12)
            row[earned], row[price] = 1.0, -value * (10.0 if way == "demand of another column" else 1.0)
            rows.append(row[None])
            sides = [np.append(side, 0.0) for side in sides]
        if np.all(lower <= upper):
            limits = LinearConstraint(np.vstack(rows), *sides)
            found = milp(mip.cost, integrality=mip.integer, bounds=Bounds(lower, upper), constraints=limits)
            best = min(best, found.fun if found.success else np.inf)
    return problem.mip.sign * best if np.isfinite(best) else None


@pytest.mark.parametrize("way", WAYS)
def test_products_of_what_trees_predict_are_proved_however_they_are_written(way):
    for seed in range(100) if FULL else (0,):
        problem, predictors = shops(seed, way)
        best, sign = best_of(problem, predictors, way), problem.mip.sign
        if best is None:
            continue
        result = dt.solve(problem, time_limit=600.0, gap=1e-6, log=False)
        room = 1e-5 * (1.0 + abs(best))
        assert result.status == "optimal", seed
        assert sign * result.bound <= sign * best + room, seed
        assert result.objective == pytest.approx(best, abs=10.0 * room), seed


def tree_of(problem):
    """Of a problem with the products taken apart."""
    given = Reformulated.start(problem, propagate(problem.mip.minimised()))
    taken = TakenApart().apply(given)
    structure = Structure(problem if taken is None else taken.problem)
    reached = structure.reached
    made = model_of(reached.problem, reached.box.lower, reached.box.upper, structure.tree_blocks)
    return structure.problem, Tree(made, seed=0, threads=1)


def tables(problem):
    """In the whole box."""
    problem, tree = tree_of(problem)
    lower, upper = tree.root.lower[None], tree.root.upper[None]
    assert tree.model.tighten(lower, upper, np.inf)[0]
    return problem, tree_tables(tree.model, lower[0], upper[0], Budget()), (lower[0], upper[0])


def of_library(library, name):
    """A product of what a model of three inputs gives with its first input."""
    mip = dt.Mip(np.zeros(5), lower=[-2.0] * 3 + [-99.0] * 2, upper=[2.0] * 3 + [99.0] * 2)
    problem = dt.Problem(mip)
    problem.add_predictor(dt.Product(models.model(library, name), 0, 0, keep=True), [0, 1, 2], [3, 4])
    return problem


@pytest.mark.parametrize("most", [2**17, 60])
@pytest.mark.parametrize(
    ("library", "name"), [("sklearn", "GradientBoostingRegressor"), ("xgboost", "XGBRegressor")]
)
def test_rows_hold_at_every_point_and_in_every_box(library, name, most, monkeypatch):
    monkeypatch.setattr("dovetail.branching.tree_tables.MOST_CELLS", most)
    problem, (table,), (lower, upper) = tables(of_library(library, name))
    rng, budget, found = np.random.default_rng(0), Budget(), 0
    X = rng.uniform(lower, upper, (200, lower.size))
    X[:50, 0] = table.high[0][rng.integers(0, table.high[0].size, 50)]  # on cuts
    points = np.array([problem.predict(x[: problem.mip.n_columns]) for x in X])
    inner = TablePart(table, lower[table.inputs], upper[table.inputs])
    for _ in range(10):
        off = points[rng.integers(len(points))].copy()
        off[table.outputs] += rng.normal(size=table.outputs.size) * 3.0
        row = inner.cut_off(off[table.inputs], off[table.outputs], budget)
        if row is None:
            continue
        entries, values = row
        columns = np.append(table.inputs, table.outputs)
        said = points[:, columns] @ entries
        sides = table.least_in([values], points[:, table.inputs], points[:, table.inputs])[:, 0]
        whole = table.least_in([values], lower[None, table.inputs], upper[None, table.inputs])[0, 0]
        assert np.all(said >= sides) and np.all(sides >= whole)
        assert off[columns] @ entries < whole
        found += 1
    assert found


def part_of(tree, begin, end):
    """The part of the first box in which the first price lies between two parts of its range."""
    lower, upper = tree.root.lower.copy(), tree.root.upper.copy()
    assert tree.model.tighten(lower[None], upper[None], np.inf)[0]
    low, wide = lower[0], upper[0] - lower[0]
    lower[0], upper[0] = low + begin * wide, low + end * wide
    return Node(-np.inf, 1, lower, upper)


def test_multipliers_are_of_the_rows_that_are_known(monkeypatch):
    """The first box is made smaller from time to time, and the tree goes back to the rows before."""
    seen = []
    own = TableRows._leave_out

    def checked(self, node, bound, weights, goal):
        written = tree.model.host.A[-1 - len(self._rows) : -1].toarray()
        seen.append(weights.size == len(self._rows) == len(written))
        for row, entries in zip(self._rows, written, strict=False):
            seen.append(
                np.allclose(np.sort(entries[entries != 0.0]), np.sort(row.entries[row.entries != 0.0]))
            )
        return own(self, node, bound, weights, goal)

    monkeypatch.setattr(TableRows, "_leave_out", checked)
    _, tree = tree_of(shops(0, "one predictor")[0])
    rows, budget = TableRows(), Budget()
    rows.add(tree, part_of(tree, 0.0, 1.0), np.inf, budget)
    earlier = tree.model
    rows.add(tree, part_of(tree, 0.4, 0.8), np.inf, budget)
    assert tree.model.host.A.shape[0] > earlier.host.A.shape[0]
    tree.use(earlier)
    rows.add(tree, part_of(tree, 0.05, 0.95), np.inf, budget)
    assert len(seen) > 10 and all(seen)

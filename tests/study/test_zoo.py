"""The zoo: every kind builds, is the same for the same seed, is feasible, and a third is held out."""

import numpy as np
import pytest

import dovetail as dt
from dovetail_study.problems import PROBLEMS
from dovetail_study.problems.host import Host
from dovetail_study.zoo import KINDS, build
from tests.conftest import sample

SEED = 0
BOUNDED_BY_ROWS = {"water"}
"""The study states the bounds of its treated samples as rows."""
QUICK_FIRST = sorted(
    KINDS, key=lambda name: (not name.endswith("-trees"), name != "offers", name in PROBLEMS)
)
"""Trees are trained in hundredths of a second, one network in a tenth, the study's in half a second."""
POINTS = {
    "ladders": {f"level[{s},{p}][2]": 1.0 for s in range(3) for p in range(2)}
    | {f"price[{s},{p}]": 6.5 for s in range(3) for p in range(2)},
    "offers": {},
    "doses": {f"{what}[{d}]": 1.0 for what in ("dose", "use") for d in range(3)},
    "revenue": {"price[0]": 9.0, "price[1]": 9.0},
    "facilities": {f"open[{f}]": 1.0 for f in range(4)}
    | {f"modules[{f}]": 4.0 for f in range(4)}
    | {f"serve[{f},{c}]": 0.25 for f in range(4) for c in range(6)},
}
"""Where the docstring names a point: its values at size 1; other variables are 0, or at their bounds."""
KNOWN: dict[tuple[str, int], dt.Problem] = {}
"""Built once: most of the time goes into training."""


def built(name, seed=SEED):
    if (name, seed) not in KNOWN:
        KNOWN[name, seed] = build(name, 1, seed)
    return KNOWN[name, seed]


def host_of(name):
    return name.removesuffix("-trees")


def facts(problem):
    """All numbers of the host, and what the predictors say of a point within the bounds."""
    mip = problem.mip
    low, high = np.maximum(mip.lower, -10.0), np.minimum(mip.upper, 10.0)
    point = problem.predict(low + 0.37 * np.maximum(high - low, 0.0))
    host = (
        mip.cost,
        mip.A.toarray().ravel(),
        mip.row_lower,
        mip.row_upper,
        mip.lower,
        mip.upper,
        mip.integer,
    )
    return np.concatenate([*host, point[problem.outputs]]), mip.names, mip.row_names


def same(one, other):
    (numbers, *names), (others, *other_names) = facts(one), facts(other)
    return names == other_names and numbers.shape == others.shape and np.array_equal(numbers, others)


@pytest.mark.parametrize("name", sample(QUICK_FIRST, 4))
def test_predictors_read_bounded_variables(name):
    problem = built(name)
    read = np.setdiff1d(problem.inputs, problem.outputs)
    bounded = np.isfinite(problem.mip.lower[read]) & np.isfinite(problem.mip.upper[read])
    assert bounded.all() or name in BOUNDED_BY_ROWS


@pytest.mark.parametrize("name", sample([name for name in QUICK_FIRST if host_of(name) not in POINTS], 2))
def test_a_search_finds_a_feasible_point(name):
    problem = built(name)
    result = dt.solve(problem, target=problem.mip.sign * 1e12, log=False)
    assert dt.check(problem, result.x).within()


@pytest.mark.parametrize("name", [name for name in KINDS if host_of(name) in POINTS])
def test_the_point_of_the_docstring_is_feasible(name):
    problem = built(name)
    x = np.clip(0.0, problem.mip.lower, problem.mip.upper)
    for column, value in POINTS[host_of(name)].items():
        x[problem.mip.names.index(column)] = value
    assert dt.check(problem, problem.predict(x)).within()


@pytest.mark.parametrize("name", sample(QUICK_FIRST, 2))
def test_the_seed_decides_everything(name):
    assert same(built(name), build(name, 1, SEED))
    assert not same(built(name), build(name, 1, SEED + 1))


def test_sizes_grow():
    columns = [build("offers-trees", size, SEED).mip.n_columns for size in (1, 2, 3)]
    assert columns == sorted(set(columns))


def test_a_third_is_held_out_over_the_whole_range():
    held = [kind.name for kind in KINDS.values() if kind.held_out]
    assert len(KINDS) >= 20
    assert 3 * len(held) == len(KINDS)
    assert any("trees" in name for name in held)
    problems = [built(name) for name in held]
    assert any(block.samples > 1 for problem in problems for block in problem.blocks)
    assert any(len(problem.stages) > 1 for problem in problems)
    assert any(block.classifies for problem in problems for block in problem.blocks)


def test_what_is_not_known_is_refused_by_name():
    with pytest.raises(dt.OptionError, match="'doses'"):
        build("dose", 1, 0)
    with pytest.raises(dt.OptionError, match="size is 4; give 1"):
        build("doses", 4, 0)


def test_a_host_is_what_was_written():
    host = Host("max")
    level = host.choice("level", 2, cost=[1.0, 3.0])
    x = host.variable("x", 0.0, 5.0, cost=-1.0)
    host.equal("price", x, [(2.0, level[0]), (4.0, level[1])], 0.5)
    mip = host.problem().mip
    assert mip.names == ("level[0]", "level[1]", "x") and mip.row_names == ("level", "price")
    assert mip.A.toarray().tolist() == [[1.0, 1.0, 0.0], [-2.0, -4.0, 1.0]]
    assert mip.row_lower.tolist() == mip.row_upper.tolist() == [1.0, 0.5]
    assert mip.objective(np.array([0.0, 1.0, 4.5])) == -1.5
    assert mip.integer.tolist() == [True, True, False]

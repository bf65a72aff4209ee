"""The paper's cut: rows with an output in them leave with the networks; there is one copy of every column."""

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.coupling import split as module
from dovetail.coupling.assemble import network_block
from dovetail.coupling.split import paper_split, split
from dovetail.run.work import Stopwatch
from tests.small import knapsack, random_mlp


def made_up(seed: int) -> dt.Problem:
    """Two networks that share inputs, outputs in rows with each other and with columns of nobody."""
    rng = np.random.default_rng(seed)
    n, free = 4, 5
    inputs = np.arange(2 * n)
    outputs = 2 * n + np.arange(3 * n)
    columns = 2 * n + 3 * n + free
    rows = []
    for _ in range(9):
        row = np.zeros(columns)
        row[rng.choice(columns, rng.integers(1, 4), replace=False)] = rng.uniform(-2.0, 2.0)
        rows.append(row)
    lower = np.where(np.arange(columns) < 2 * n, -1.0, -9.0)
    lower[2 * n : 5 * n] = np.where(rng.random(3 * n) < 0.3, -4.0, -np.inf)
    upper = -lower
    lower[1] = upper[1] = 0.25  # cannot move: joins nothing
    mip = dt.Mip(
        cost=rng.normal(size=columns), A=np.array(rows), lower=lower, upper=upper,
        row_lower=rng.uniform(-4, 0, 9), row_upper=rng.uniform(0, 4, 9),
    )  # fmt: skip
    problem = dt.Problem(mip)
    pairs = inputs.reshape(n, 2)
    problem.add_predictor(random_mlp(2, 2, seed=seed), pairs, outputs[: 2 * n].reshape(n, 2), name="two")
    crossed = np.column_stack([pairs[:, 0], np.full(n, 1)])
    problem.add_predictor(random_mlp(2, 1, seed=seed + 1), crossed, outputs[2 * n :, None], name="one")
    return problem


def network_of(problem, part):
    mip, rng = problem.mip, np.random.default_rng(0)
    points = {m.block.name: rng.uniform(-1, 1, (8, m.block.inputs.shape[1])) for m in part.members}
    return network_block(part, mip.lower, mip.upper, np.ones(mip.n_columns), points, None, Stopwatch())


@pytest.mark.parametrize("seed", range(20))
def test_every_row_and_cost_is_somewhere_once(seed):
    """At any completed point: the MIP's rows and the parts' rows are the original rows, with their limits."""
    problem = made_up(seed)
    mip = problem.mip.minimised()
    cut = paper_split(problem)
    x = np.random.default_rng(seed).uniform(-1.0, 1.0, mip.n_columns)
    x[1] = 0.25
    for block in problem.blocks:
        x[block.outputs] = block.predictor.predict(x[block.inputs])
    taken = [r for part in cut.parts for r in part.taken]
    assert len(taken) == len(set(taken))
    assert sorted(taken) == sorted(
        np.flatnonzero(abs(mip.A) @ np.isin(np.arange(mip.n_columns), problem.outputs))
    )
    assert cut.mip.n_rows == mip.n_rows - len(taken)
    wanted = {mip.row_name(r): (mip.A[[r]] @ x, mip.row_lower[r], mip.row_upper[r]) for r in taken}
    cost = cut.mip.cost @ x
    for part in cut.parts:
        assert not part.couples_outputs
        cost += mip.cost[part.outputs].ravel() @ x[part.outputs].ravel()
        network = network_of(problem, part)
        u = torch.as_tensor(x[part.columns])
        values = network.values(u)
        np.testing.assert_allclose(values.numpy(), x[part.outputs], atol=1e-5)
        if network.rows is None:
            continue
        activity = network.rows.activity(u, values)
        for g in range(part.samples):
            for k, name in enumerate(network.rows.names[g]):
                if name in wanted:
                    value, low, high = wanted.pop(name)
                    assert float(activity[g, k]) == pytest.approx(float(value[0]), abs=1e-5)
                    assert (float(network.rows.lower[g, k]), float(network.rows.upper[g, k])) == (low, high)
    assert not wanted
    assert cost == pytest.approx(mip.cost @ x)


@pytest.mark.parametrize("seed", range(5))
def test_a_column_that_moves_has_one_copy(seed):
    problem = made_up(seed)
    copies = np.concatenate([part.columns.ravel() for part in paper_split(problem).parts])
    moves = problem.mip.upper > problem.mip.lower
    found, counts = np.unique(copies[moves[copies]], return_counts=True)
    assert counts.max() == 1
    rows = [r for part in paper_split(problem).parts for r in part.taken]
    touched = np.flatnonzero(abs(problem.mip.A[rows]).sum(axis=0)) if rows else []
    needed = np.setdiff1d(np.union1d(problem.inputs, touched), problem.outputs)
    assert set(needed[moves[needed]]) == set(found)


def test_samples_with_rows_of_their_own_are_a_batch_as_before():
    """Nothing is shared: the same parts as the inputs form, sample by sample."""
    mip = dt.Mip(
        cost=[0.0] * 4 + [1.0] * 2, A=[[1, 0, 0, 0, 1, 0], [0, 0, 1, 0, 0, 1]], row_lower=-3.0, row_upper=3.0,
        lower=-1.0, upper=[1.0] * 4 + [5.0] * 2,
    )  # fmt: skip
    problem = dt.Problem(mip)
    problem.add_predictor(random_mlp(2, 1), [[0, 1], [2, 3]], [[4], [5]], name="net")
    (ours,), (theirs,) = split(problem).parts, paper_split(problem).parts
    assert theirs.is_alone and theirs.name == ours.name == "net"
    assert theirs.columns.tolist() == ours.columns.tolist()
    for one, other in zip(ours.rows, theirs.rows, strict=True):
        assert [row.name for row in one] == [row.name for row in other]
        for a, b in zip(one, other, strict=True):
            assert (a.on_inputs.tolist(), a.on_outputs.tolist()) == (
                b.on_inputs.tolist(),
                b.on_outputs.tolist(),
            )


def test_groups_of_other_shapes_have_names_of_their_own():
    """Pairs of samples share an input, each in another place, and one is alone: no multiplier is lost."""
    inputs = [[0, 1], [0, 2], [3, 4], [5, 4], [6, 7], [8, 6], [9, 10]]
    n, d = len(inputs), 11
    problem = dt.Problem(dt.Mip(cost=[0.0] * d + [1.0] * n, lower=-2.0, upper=2.0))
    problem.add_predictor(random_mlp(2, 1), inputs, d + np.arange(n)[:, None], name="net")
    parts = paper_split(problem).parts
    assert [part.columns.shape for part in parts] == [(1, 3), (1, 3), (1, 3), (1, 2)]
    assert [part.name for part in parts] == ["net", "net #2", "net #3", "net #4"]
    result = dt.solve(problem, dt.DualDecomposition(copies="rows", iterations=2), log=False)
    assert set(result.multipliers.inputs) == {part.name for part in parts}


def chained() -> dt.Problem:
    problem = dt.Problem(dt.Mip(cost=[0.0, 1.0, 1.0], lower=-1.0, upper=1.0))
    problem.add_predictor(random_mlp(1, 1), [0], [1], name="first")
    problem.add_predictor(random_mlp(1, 1), [1], [2], name="second")
    return problem


def whole() -> dt.Problem:
    problem = dt.Problem(dt.Mip(cost=[0.0, 1.0], lower=-1.0, upper=1.0, integer=[False, True]))
    problem.add_predictor(random_mlp(1, 1), [0], [1], name="net")
    return problem


def classes() -> dt.Problem:
    mip = dt.Mip(
        cost=[0.0, 1.0, 1.0], A=[[0.0, 1.0, 1.0]], row_lower=1.0, row_upper=9.0, lower=[-1, 0, 0], upper=1.0
    )
    problem = dt.Problem(mip)
    problem.add_predictor(random_mlp(1, 1), [0], [1], output_type="classification", name="net")
    return problem


@pytest.mark.parametrize(
    ("problem", "coupled"), [(chained(), ["first"]), (whole(), ["net"]), (classes(), ["net"])]
)
def test_what_the_paper_does_not_have_keeps_its_second_coupling(problem, coupled):
    assert [part.name for part in paper_split(problem).parts if part.couples_outputs] == coupled


def test_groups_too_large_to_hold_are_refused_by_name(monkeypatch):
    monkeypatch.setattr(module, "MOST_ENTRIES", 3)
    with pytest.raises(dt.UnsupportedError, match="two\\+one.*copies="):
        paper_split(made_up(0))


def test_a_knapsack_of_shared_outputs_is_solved():
    """The outputs share rows with each other: one group; the point is verified, the optimum is known."""
    result = dt.solve(knapsack("min"), dt.DualDecomposition.paper(), log=False)
    assert result.violation.within()
    assert result.engine in ("highs", "piqp")

"""Components: who owns which column and row, on problems small enough to know by heart."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.structure.components import NOBODY, components
from dovetail_study.problems.water import water
from tests.small import linear_net


def made(rows, columns, samples, **limits):
    """A problem over one-input networks: `samples` are pairs (inputs, output); `rows` lists of columns."""
    A = np.zeros((len(rows), columns))
    for i, row in enumerate(rows):
        A[i, row] = 1.0
    lower, upper = np.full(columns, -5.0), np.full(columns, 5.0)
    for j, value in limits.get("fixed", {}).items():
        lower[j] = upper[j] = value
    mip = dt.Mip(
        cost=np.zeros(columns), A=A, row_lower=-9.0, row_upper=9.0, lower=lower, upper=upper
    )  # fmt: skip
    problem = dt.Problem(mip)
    for inputs, output in samples:
        problem.add_predictor(linear_net(np.ones(len(inputs))), inputs, [output])
    return problem


def test_columns_follow_rows_from_short_to_long():
    # 0, 1 inputs; 2, 3 outputs; 4 belongs to sample 0, 5 through 4; 6 to sample 1; 7 and 8 to nobody
    rows = [
        [4, 5],  # nobody's until row 1 has given 4 to the first sample
        [0, 4],
        [1, 6],
        [0, 1],  # coupling
        [0, 5, 6],  # coupling: 5 is decided elsewhere
        [2, 3, 7],  # coupling, and 7 stays shared
        [7, 8],  # shared columns only
        [1, 3, 6],
        [2],
    ]
    parts = components(made(rows, 9, [([0], 2), ([1], 3)]))
    assert parts.count == 2
    assert parts.owner.tolist() == [0, 1, 0, 1, 0, 0, 1, NOBODY, NOBODY]
    assert parts.row_owner.tolist() == [0, 0, 1, NOBODY, NOBODY, NOBODY, NOBODY, 1, 0]
    assert np.flatnonzero(parts.shared).tolist() == [7, 8]
    assert [sorted(columns.tolist()) for columns in parts.members] == [[0, 2, 4, 5], [1, 3, 6]]


def test_samples_that_share_a_column_are_one_component():
    parts = components(made([[0, 4]], 6, [([0, 1], 3), ([1, 2], 4), ([5], 2)]))
    # sample 2 writes column 2, which sample 1 reads: all three hang together
    assert parts.count == 1
    assert parts.owner.tolist() == [0] * 6
    assert parts.row_owner.tolist() == [0]


def test_a_fixed_input_ties_nothing_together():
    apart = made([[0, 3], [1, 4], [2]], 5, [([0, 2], 3), ([1, 2], 4)], fixed={2: 1.0})
    parts = components(apart)
    assert parts.count == 2
    assert parts.owner[[0, 3]].tolist() == [0, 0]
    assert parts.owner[[1, 4]].tolist() == [1, 1]
    assert parts.row_owner[:2].tolist() == [0, 1]


def test_a_fixed_output_still_has_an_owner():
    parts = components(made([[2, 3]], 4, [([0], 2), ([1], 3)], fixed={2: 0.5, 3: 0.5}))
    assert parts.count == 2
    assert parts.owner.tolist() == [0, 1, 0, 1]
    assert parts.row_owner.tolist() == [NOBODY]


def test_a_sample_of_nothing_but_fixed_inputs_is_a_component():
    parts = components(made([], 4, [([0], 2), ([1], 3)], fixed={0: 1.0}))
    assert parts.count == 2
    assert parts.owner[[1, 2, 3]].tolist() == [1, 0, 1]


def one_by_one(owner, rows):
    """Who owns what, by the rule itself: one row after the other, short ones first, while any adds some."""
    waiting, grown = sorted(rows, key=len), True
    while grown:
        grown, later = False, []
        for row in waiting:
            owners = {owner[j] for j in row}
            touched = owners - {NOBODY}
            if not touched:
                later.append(row)
            elif len(touched) == 1 and len(owners) == 2:
                for j in row:
                    owner[j] = next(iter(touched))
                grown = True
        waiting = later
    return owner


@pytest.mark.parametrize("seed", range(60))
def test_rows_taken_at_once_give_what_they_give_one_by_one(seed):
    rng = np.random.default_rng(seed)
    columns, samples = 30, 4
    rows = [sorted(rng.choice(columns, rng.integers(1, 5), replace=False).tolist()) for _ in range(24)]
    problem = made(rows, columns, [([2 * k], 2 * k + 1) for k in range(samples)])
    seeds = [k // 2 for k in range(2 * samples)] + [NOBODY] * (columns - 2 * samples)
    assert components(problem).owner.tolist() == one_by_one(seeds, rows)


def test_the_coupling_rows_of_water_are_its_budgets():
    instance = water(n=5, epochs=2, allow_constant=True)
    parts = components(instance.problem)
    names = np.array(instance.problem.mip.row_names)
    assert parts.count == 5
    assert not parts.shared.any()
    assert sorted(names[~parts.private_rows]) == sorted(n for n in names if n.startswith("budget_"))
    for i, columns in enumerate(instance.treated):
        owner = parts.owner[instance.potable[i]]
        assert np.all(parts.owner[columns] == owner)
        mine = [k for k, n in enumerate(names) if n.startswith(f"treatment[{i},")]
        assert np.all(parts.row_owner[mine] == owner)


def test_water_with_budgets_of_its_own_has_no_coupling_rows():
    parts = components(water(n=3, epochs=2, allow_constant=True, shared=False).problem)
    assert parts.count == 3
    assert parts.private_rows.all()

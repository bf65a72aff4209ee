"""All readers alike: one program written in every tool comes out as the same arrays."""

import gc
import weakref
from dataclasses import dataclass

import numpy as np
import pandas
import pytest

import dovetail as dt
from dovetail.core.foreign import locate
from dovetail.models import foreign_model
from tests.contexts import by_scipy
from tests.tools import TOOLS, Highs


@dataclass
class Arrays:
    """A program before it is written in a tool; columns are called x0, x1, ... and rows r0, r1, ..."""

    cost: np.ndarray
    A: np.ndarray
    row_lower: np.ndarray
    row_upper: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    integer: np.ndarray
    sense: str
    offset: float

    def mip(self):
        names = [f"x{j}" for j in range(self.cost.size)]
        rows = [f"r{i}" for i in range(len(self.A))]
        return dt.Mip(**vars(self), names=names, row_names=rows)


def chance_program(seed, *, plain=False):
    """Feasible and bounded; `plain` for tools without two-sided rows and constants in the objective."""
    rng = np.random.default_rng(seed)
    rows, columns = 4, 6
    integer = rng.random(columns) < 0.5
    lower = rng.integers(-5, 1, columns).astype(float)
    upper = lower + rng.integers(1, 9, columns)
    cost = rng.integers(-9, 10, columns) / 2
    endless = np.array([0, 1])
    lower[0], upper[1], cost[endless] = -np.inf, np.inf, 0.0
    inside = np.round(rng.uniform(np.maximum(lower, -5), np.minimum(upper, 9)))
    inside = np.clip(inside, lower, upper)
    A = np.round(rng.normal(size=(rows, columns)), 2) * (rng.random((rows, columns)) < 0.6)
    A[:, 2] += 1.25  # no row is empty
    at = A @ inside
    senses = np.arange(rows) % 4
    row_lower = np.where(senses == 0, -np.inf, at - rng.random(rows) * (senses != 2))
    row_upper = np.where(senses == 1, np.inf, at + rng.random(rows) * (senses != 2))
    row_upper[senses == 2] = row_lower[senses == 2]
    if plain:
        row_upper[senses == 3] = np.inf
    offset = 0.0 if plain else float(rng.integers(-9, 10)) / 4
    sense = "max" if seed % 2 else "min"
    return Arrays(cost, A, row_lower, row_upper, lower, upper, integer, sense, offset)


every_tool = pytest.mark.parametrize("tool", TOOLS, ids=str)


def canonical(mip):
    """Everything in a program, columns and rows in the order of their names."""
    columns = np.argsort(mip.names)
    rows = np.argsort(mip.row_names)
    names = [sorted(mip.names), sorted(mip.row_names), mip.sense]
    numbers = [
        mip.A.toarray()[rows][:, columns],
        mip.row_lower[rows],
        mip.row_upper[rows],
        mip.cost[columns],
        mip.lower[columns],
        mip.upper[columns],
        mip.integer[columns],
        mip.offset,
    ]
    return names, numbers


def assert_same(one, other):
    (names, numbers), (other_names, other_numbers) = canonical(one), canonical(other)
    assert names == other_names
    for array, same in zip(numbers, other_numbers, strict=True):
        np.testing.assert_allclose(array, same, rtol=1e-12, atol=1e-12)


def written(tool, seed=0):
    arrays = chance_program(seed, plain=tool.plain)
    model, variables = tool.write(arrays)
    return arrays, model, variables, foreign_model(model)


@every_tool
@pytest.mark.parametrize("seed", range(4))
def test_the_same_program_in_every_tool(tool, seed):
    arrays, _, variables, foreign = written(tool, seed)
    reading = foreign.read()
    assert_same(reading.mip, arrays.mip())
    places = locate(foreign, reading, "all", foreign.unpack(variables))
    assert [reading.mip.names[j] for j in places.column] == [f"x{j}" for j in range(len(variables))]
    x = np.random.default_rng(seed).normal(size=len(variables))
    point = np.empty(reading.mip.n_columns)
    point[places.column] = x
    assert reading.mip.objective(point) == pytest.approx(arrays.cost @ x + arrays.offset)


@every_tool
@pytest.mark.parametrize("seed", [0, 1])
def test_the_optimum_is_the_one_the_tool_finds(tool, seed):
    _, model, _, foreign = written(tool, seed)
    mip = foreign.read().mip
    assert tool.optimum(model) == pytest.approx(by_scipy(mip)[0], rel=1e-4, abs=1e-6)
    assert_same(foreign.read().mip, mip)  # a model that has been solved reads as before


@every_tool
def test_a_model_without_variables_is_refused(tool):
    with pytest.raises(dt.ModelError, match="no variables"):
        foreign_model(tool.new()).read()


@every_tool
def test_columns_alone_are_the_same_columns(tool):
    _, _, _, foreign = written(tool)
    whole, columns = foreign.read(), foreign.read(rows=False)
    assert columns.keys == whole.keys
    assert columns.mip.names == whole.mip.names
    assert columns.mip.n_rows == 0
    for kind in ("lower", "upper", "integer"):
        np.testing.assert_array_equal(getattr(columns.mip, kind), getattr(whole.mip, kind))


@every_tool
def test_reading_leaves_the_model_as_it_was(tool, tmp_path):
    _, model, variables, foreign = written(tool)
    before = tool.text(model, tmp_path)
    foreign.read()
    foreign.unpack([[variables[0], 1.0], [variables[1], variables[0]]])
    assert tool.text(model, tmp_path) == before


@every_tool
@pytest.mark.parametrize("binary", [False, True])
def test_what_is_made_can_be_taken_back(tool, binary, tmp_path):
    _, model, variables, foreign = written(tool)
    before, mip = tool.text(model, tmp_path), foreign.read().mip
    made = foreign.create((2, 3), binary=binary, name="out")
    entries = foreign.unpack(made)
    assert entries.shape == (2, 3)
    more = foreign.read()
    columns = locate(foreign, more, "made", entries).column.ravel()
    assert sorted([*columns, *locate(foreign, more, "own", foreign.unpack(variables)).column]) == [
        *range(more.mip.n_columns)
    ]
    assert np.all(more.mip.integer[columns] == binary)
    assert np.all(more.mip.lower[columns] == (0.0 if binary else -np.inf))
    assert np.all(more.mip.upper[columns] == (1.0 if binary else np.inf))
    foreign.discard(made)
    assert_same(foreign.read().mip, mip)
    assert tool.text(model, tmp_path) == before


@every_tool
def test_making_twice_under_one_name(tool):
    _, _, _, foreign = written(tool)
    one = foreign.create((1, 2), binary=False, name="out")
    other = foreign.create((1, 2), binary=False, name="out")
    reading = foreign.read()
    columns = [locate(foreign, reading, "made", foreign.unpack(made)).column for made in (one, other)]
    assert len(set(np.ravel(columns))) == 4


@every_tool
def test_changes_between_two_readings_are_seen(tool):
    _, model, variables, foreign = written(tool)
    before = foreign.read()
    spare = tool.add(model, "spare", 0.0, 3.0)
    with_spare = foreign.read()
    assert set(with_spare.mip.names) - set(before.mip.names) == {"spare"}
    tool.set_upper(model, variables[2], 77.0)
    changed = foreign.read().mip
    assert changed.upper[changed.names.index("x2")] == 77.0
    last = tool.add(model, "last", 1.0, 4.0)
    tool.remove(model, spare, last)
    reading = foreign.read()
    assert set(reading.mip.names) - set(before.mip.names) == {"last"}
    column = locate(foreign, reading, "last", foreign.unpack([[last]])).column
    assert reading.mip.names[column.item()] == "last"
    columns = locate(foreign, reading, "all", foreign.unpack(variables)).column
    assert [reading.mip.names[j] for j in columns] == [f"x{j}" for j in range(len(variables))]


@pytest.mark.parametrize("tool", [t for t in TOOLS if not isinstance(t, Highs)], ids=str)
def test_variables_keep_their_keys(tool):
    """All but highspy, which knows columns by their places only."""
    _, model, variables, foreign = written(tool)
    spare = tool.add(model, "spare")
    last = tool.add(model, "last")
    before = foreign.read()
    tool.remove(model, spare)
    after = foreign.read()
    assert set(after.keys) < set(before.keys)
    for variable in [*variables, last]:
        key = foreign.key(foreign.unpack([variable])[0])
        assert before.mip.names[before.column[key]] == after.mip.names[after.column[key]]


@every_tool
def test_removed_and_foreign_variables_are_refused(tool):
    _, model, variables, foreign = written(tool)
    spare = tool.add(model, "spare")
    entries = foreign.unpack([variables[0], spare])
    tool.remove(model, spare)
    with pytest.raises(dt.ModelError):
        locate(foreign, foreign.read(), "inputs", entries)
    other, others = tool.write(chance_program(1, plain=tool.plain))
    strangers = [foreign.unpack([variable])[0] for variable in others]
    for stranger in strangers:
        with pytest.raises(dt.ModelError):
            foreign.key(stranger)
    del other, others
    gc.collect()
    for stranger in strangers:  # of a model that may be gone
        with pytest.raises(dt.ModelError):
            foreign.key(stranger)


@every_tool
def test_what_is_no_variable_is_refused(tool):
    _, _, variables, foreign = written(tool)
    reading = foreign.read()
    for wrong in (2.0 * variables[0] + variables[1], object(), None):
        with pytest.raises(dt.ModelError):
            locate(foreign, reading, "inputs", foreign.unpack([wrong]))
    for number in (np.nan, np.inf):
        with pytest.raises(dt.ModelError, match="finite"):
            locate(foreign, reading, "inputs", foreign.unpack([variables[0], number]))
    with pytest.raises(dt.ModelError, match="different shapes"):
        foreign.unpack([[variables[0], 1.0], [variables[1]]])


@every_tool
def test_numbers_stay_beside_variables_and_shapes_are_kept(tool):
    _, _, x, foreign = written(tool)
    reading = foreign.read()
    grid = [[x[0], 2, 0.5], [np.float64(1.5), x[3], x[0]]]
    square = np.empty((2, 3), dtype=object)
    for i, row in enumerate(grid):
        for j, entry in enumerate(row):
            square[i, j] = entry
    keyed = {(i, "abc"[j]): entry for i, row in enumerate(grid) for j, entry in enumerate(row)}
    columns = [[reading.mip.names.index("x0"), -1, -1], [-1, *map(reading.mip.names.index, ("x3", "x0"))]]
    for given in (grid, tuple(map(tuple, grid)), square, pandas.DataFrame(square), keyed):
        places = locate(foreign, reading, "inputs", foreign.unpack(given))
        assert places.column.tolist() == columns
        assert places.number.tolist() == [[0.0, 2.0, 0.5], [1.5, 0.0, 0.0]]
    for given in (grid[0], pandas.Series(square[0]), dict(zip("abc", grid[0], strict=True))):
        assert locate(foreign, reading, "inputs", foreign.unpack(given)).column.tolist() == columns[0]
    del keyed[0, "a"]
    assert foreign.unpack(keyed).shape == (5,)
    assert foreign.unpack([square, square]).shape == (2, 2, 3)


@every_tool
def test_a_model_is_not_kept_alive(tool):
    _, model, variables, foreign = written(tool)
    kept = (foreign.read(), foreign.unpack(variables) if isinstance(variables, foreign.heavy) else variables)
    gone = weakref.ref(model)
    del model, variables, foreign
    gc.collect()
    assert gone() is None
    assert kept

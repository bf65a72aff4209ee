"""Tree planting: the paper's model, against enumeration where the plot is small."""

import itertools

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail_study.problems import tree as module
from dovetail_study.problems.tree import SPECIES, tree
from tests.conftest import FULL, sample, volume


@pytest.fixture(scope="module")
def plot():
    return tree(2, "2x8", seed=3, epochs=10)


def survival(instance, z):
    """(cells, species) what the networks say, by torch alone."""
    inputs = instance.problem.blocks[0].inputs
    features = instance.problem.mip.lower[inputs].copy()
    features[:, 6] = z
    with torch.no_grad():
        batch = torch.tensor(features, dtype=torch.float32)
        return np.column_stack([net(batch).double().numpy() for net in instance.networks])


def best_by_enumeration(instance):
    """All plantings and all sterilisations of a small plot."""
    mip = instance.problem.mip
    cells = len(instance.sterilised)
    price_row = 2 * cells * 4 + cells
    price = mip.A[[price_row]].toarray()[0][instance.planted]
    money, beta = mip.row_upper[price_row], mip.row_upper[price_row + 1]
    gamma = mip.row_lower[price_row + 2 :]
    best = -np.inf
    for z in itertools.product((0.0, 1.0), repeat=cells):
        if sum(z) > beta:
            continue
        s = survival(instance, np.array(z))
        for choice in itertools.product(range(4), repeat=cells):
            picked = s[np.arange(cells), choice]
            if price[np.arange(cells), choice].sum() > money:
                continue
            per_species = np.bincount(choice, picked, 4)
            if np.all(per_species >= gamma - 1e-9):
                best = max(best, picked.sum())
    return best


def given(instance):
    """The site's own numbers, read off the rows: a price per species, the money, beta and gamma."""
    mip, (cells, kinds) = instance.problem.mip, instance.planted.shape
    row = 2 * cells * kinds + cells
    price = mip.A[[row]].toarray()[0][instance.planted[0]]
    return price, mip.row_upper[row], mip.row_upper[row + 1], mip.row_lower[row + 2 :]


def tables(instance):
    """(2, cells, species) what the networks say of every cell, left alone and sterilised."""
    cells = len(instance.sterilised)
    return np.stack([survival(instance, np.full(cells, z)) for z in (0.0, 1.0)])


def best_by_halves(instance):
    """All plantings and all sterilisations of nine cells: 4^5 plantings of five joined to 4^4 of four."""
    price, money, beta, gamma = given(instance)
    table, cells = tables(instance), len(instance.sterilised)
    parts = [np.arange(5), np.arange(5, cells)]
    choices = [np.array(list(itertools.product(range(4), repeat=part.size))) for part in parts]
    paid = [price[choice].sum(axis=1) for choice in choices]
    affordable = paid[0][:, None] + paid[1] <= money
    best = -np.inf
    for z in itertools.product((0, 1), repeat=cells):
        if sum(z) > beta:
            continue
        s = table[np.array(z), np.arange(cells)]
        one, two = (
            np.stack([np.where(choice == k, s[part, k], 0.0).sum(axis=1) for k in range(4)], axis=1)
            for part, choice in zip(parts, choices, strict=True)
        )
        fits = affordable.copy()
        for k in range(4):
            fits &= one[:, k, None] + two[:, k] >= gamma[k] - 1e-9
        total = one.sum(axis=1)[:, None] + two.sum(axis=1)
        best = max(best, float(np.max(total, where=fits, initial=-np.inf)))
    return best


@volume("262,144 plantings times 512 sterilisations; two by two is enumerated below")
@pytest.mark.parametrize("network", ["1x4", "2x16", "8x32", "16x64"])
def test_three_by_three_against_enumeration(network):
    """Whatever the depth of the networks, the proved optimum is the one of all plantings."""
    instance = tree(3, network, seed=5, epochs=10, allow_constant=True)
    assert np.ptp(tables(instance), axis=1).max() > 1e-3  # the networks say something
    result = dt.solve(instance.problem, time_limit=60, log=False)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(best_by_halves(instance), rel=2e-6)


def test_it_is_the_papers_model(plot):
    mip = plot.problem.mip
    cells, size = 4, 16
    assert mip.n_columns == 3 * size + 7 * cells
    assert mip.sense == "max"
    assert mip.integer.sum() == size + cells
    assert np.all(mip.lower[plot.counted] == 0.0) and np.all(mip.upper[plot.counted] == 1.0)
    assert len(plot.problem.blocks) == 4
    assert [block.name for block in plot.problem.blocks] == list(SPECIES)
    free = mip.upper[plot.problem.blocks[0].inputs] > mip.lower[plot.problem.blocks[0].inputs]
    assert free.sum(axis=1).tolist() == [1] * cells


def test_the_indicators_mean_what_they_say_and_nothing_beats_enumeration(plot):
    """s' is 0 where nothing is planted and at most s where something is."""
    best = best_by_enumeration(plot)
    assert np.isfinite(best)
    for solver in sample([dt.ProjectedGradient(), dt.LogBarrier()]):
        method = dt.DualDecomposition(nn_solver=solver, iterations=15 if FULL else 4)
        result = dt.solve(plot.problem, method, time_limit=60, log=False)
        assert 0.6 * best <= result.objective <= best + 1e-6
    planted, counted = result.value(plot.planted), result.value(plot.counted)
    assert np.all(counted[planted < 0.5] < 1e-6)
    assert np.all((counted <= result.value(plot.survival) + 1e-6)[planted > 0.5])
    assert planted.sum(axis=1) == pytest.approx(np.ones(4))
    assert sum(plot.counts(result)[species] for species in SPECIES) == 4


def test_light_classes_are_read_whatever_their_case(tmp_path):
    lines = ["Species,Light_ISF,Light_Cat,Myco,SoilMyco,Sterile,Event"]
    lines += ["Acer saccharum,0.1,Low,AMF,EMF,Non-Sterile,1", "quercus alba,0.2,MED,EMF,AMF,Sterile,0"]
    lines += ["Prunus serotina,0.3,high,AMF,Sterile,Sterile,1", "Unknown tree,0.1,low,AMF,AMF,Sterile,0"]
    path = tmp_path / "tree_survivability.csv"
    path.write_text("\n".join(lines) + "\n")
    species, X, survived = module._read(path)
    assert species.tolist() == [0, 2, 1]
    assert X[:, 1:4].tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert X[:, 4:].tolist() == [[1, 0, 0], [0, 1, 1], [1, 0, 1]]
    assert survived.tolist() == [0.0, 1.0, 0.0]


def test_bad_sizes_are_refused():
    with pytest.raises(dt.OptionError, match="grid is 0"):
        tree(0)

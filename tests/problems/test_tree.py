"""Tree planting: the paper's model, against enumeration where the plot is small."""

import itertools

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.problems import tree as module
from dovetail.problems.tree import SPECIES, look_alike, tree


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


def test_it_is_the_papers_model(plot):
    mip = plot.problem.mip
    cells, size = 4, 16
    assert mip.columns == 3 * size + 7 * cells
    assert mip.sense == "max"
    assert mip.integer.sum() == size + cells
    assert np.all(mip.lower[plot.counted] == 0.0) and np.all(mip.upper[plot.counted] == 1.0)
    assert len(plot.problem.blocks) == 4
    assert [block.name for block in plot.problem.blocks] == list(SPECIES)
    free = mip.upper[plot.problem.blocks[0].inputs] > mip.lower[plot.problem.blocks[0].inputs]
    assert free.sum(axis=1).tolist() == [1] * cells


def test_the_indicators_mean_what_they_say(plot):
    """s' is 0 where nothing is planted and at most s where something is."""
    result = dt.solve(plot.problem, dt.DualDecomposition(iterations=8), time_limit=60, log=False)
    planted, counted = result.value(plot.planted), result.value(plot.counted)
    assert np.all(counted[planted < 0.5] < 1e-6)
    assert np.all((counted <= result.value(plot.survival) + 1e-6)[planted > 0.5])
    assert planted.sum(axis=1) == pytest.approx(np.ones(4))
    assert sum(plot.counts(result)[species] for species in SPECIES) == 4


def test_nothing_beats_enumeration(plot):
    best = best_by_enumeration(plot)
    assert np.isfinite(best)
    for solver in (dt.ProjectedGradient(), dt.LogBarrier()):
        method = dt.DualDecomposition(nn_solver=solver, iterations=15)
        result = dt.solve(plot.problem, method, time_limit=60, log=False)
        assert result.objective <= best + 1e-6
        assert result.objective >= 0.6 * best


def test_networks_end_in_a_probability(plot):
    s = survival(plot, np.zeros(4))
    assert np.all((s > 0) & (s < 1))


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


def test_look_alike_data_looks_alike():
    species, X, survived = look_alike(0)
    assert set(species) == {0, 1, 2, 3}
    assert np.all(X[:, 1:4].sum(axis=1) == 1)
    assert 0.2 < survived.mean() < 0.8


def test_bad_sizes_are_refused():
    with pytest.raises(dt.OptionError, match="grid is 0"):
        tree(0)

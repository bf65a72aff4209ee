"""Tree planting: one of four species on each cell of a grid, some cells sterilised, most trees to survive.

    max  sum_ik s'_ik
    s.t. p_ik = 0  =>  s'_ik = 0,   p_ik = 1  =>  s'_ik <= s_ik       (as rows:  s' <= p,  s' - s + p <= 1)
         sum_k p_ik = 1,   sum_ik c_k p_ik <= B,   sum_i z_i <= beta,   sum_i s'_ik >= gamma_k
         s_ik = f_k(features of cell i, z_i)     the survival probability of species k
         p, z binary,  s, s' in [0, 1]

Six of a network's seven inputs are fixed per cell; only sterilisation z is free. The light classes of
the data are read whatever their case: a peer's loader compares with lower case, so that its three
light features are always 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import OptionError
from dovetail.core.problem import Problem
from dovetail.run.result import Result
from dovetail_study.problems import data as files
from dovetail_study.problems import networks
from dovetail_study.problems.host import Host
from dovetail_study.problems.training import Training, train_classifier

SPECIES = ("Acer saccharum", "Prunus serotina", "Quercus alba", "Quercus rubra")
FEATURES = ("light", "low", "medium", "high", "myco_amf", "soil_amf", "sterile")
FILE = "tree_survivability.csv"
GIVEN = FEATURES[:-1]
"""Features that are facts of a cell; only `sterile` is decided."""
LIGHT = (0.032, 0.161)
"""Least and most light on the plot."""


@dataclass(frozen=True, eq=False)
class Tree:
    """One instance: the problem, its network, and the columns of its variables."""

    problem: Problem
    networks: tuple[nn.Module, ...]
    trainings: tuple[Training, ...]
    planted: IntArray
    """(cells, species) columns of the binaries p."""
    survival: IntArray
    """(cells, species) columns of the predicted survival s."""
    counted: IntArray
    """(cells, species) columns of the counted survival s'."""
    sterilised: IntArray
    """(cells,) columns of the binaries z."""

    def counts(self, result: Result) -> dict[str, int]:
        """Cells per species, and cells sterilised."""
        planted = np.round(result.value(self.planted)).sum(axis=0).astype(int)
        found = {species: int(count) for species, count in zip(SPECIES, planted, strict=True)}
        found["sterilised"] = int(np.round(result.value(self.sterilised)).sum())
        return found


def tree(
    grid: int = 6,
    network: str = "8x32",
    *,
    seed: int = 42,
    data: str | Path | None = None,
    epochs: int = 40,
    allow_constant: bool = False,
) -> Tree:
    """A `grid` x `grid` plot with one trained network per species, from real or look-alike data."""
    if grid < 1:
        raise OptionError(f"grid is {grid}; give at least 1.")
    path = files.find(FILE, data)
    species, X, survived = look_alike(seed) if path is None else _read(path)
    nets, trainings = [], []
    for k in range(len(SPECIES)):
        torch.manual_seed(seed + k)
        net = networks.build(network, len(FEATURES))
        rows = species == k
        trainings.append(
            train_classifier(
                net, X[rows], survived[rows], seed=seed, epochs=epochs, allow_constant=allow_constant
            )
        )
        nets.append(nn.Sequential(net, nn.Sigmoid()))
    return formulate(grid, nets, trainings, seed)


def formulate(grid: int, nets: Sequence[nn.Module], trainings: Sequence[Training], seed: int) -> Tree:
    """The paper's model for given networks; the site and the budgets are drawn with `seed`."""
    rng = np.random.default_rng(seed)
    cells, kinds = grid * grid, len(SPECIES)
    beta = int(rng.integers(8, 13))
    price = rng.uniform(25.0, 45.0, kinds)
    gamma = rng.uniform(cells / 80.0, cells / 60.0, kinds)
    money = 1.2 * cells * float(np.median(price))
    site = _site(grid, rng)

    host = Host("max")
    each, species = range(cells), range(kinds)
    planted = host.variables("planted", each, species, upper=1.0, integer=True)
    survival = host.variables("survival", each, species, upper=1.0)
    counted = host.variables("counted", each, species, upper=1.0, cost=1.0)
    sterilised = host.variables("sterilised", each, upper=1.0, integer=True)
    fixed = np.array(
        [
            [host.known(f"{name}[{i}]", value) for name, value in zip(GIVEN, site[i], strict=True)]
            for i in each
        ]
    )
    for i, k in np.ndindex(cells, kinds):
        host.row(f"planted[{i},{k}]", [(1.0, counted[i, k]), (-1.0, planted[i, k])], upper=0.0)
    for i, k in np.ndindex(cells, kinds):
        terms = [(1.0, counted[i, k]), (-1.0, survival[i, k]), (1.0, planted[i, k])]
        host.row(f"survived[{i},{k}]", terms, upper=1.0)
    for i in each:
        host.row(f"cell[{i}]", [(1.0, column) for column in planted[i]], 1.0, 1.0)
    paid = zip(np.tile(price, cells), planted.ravel(), strict=True)
    host.row("money", paid, upper=money)
    host.row("sterilised", [(1.0, column) for column in sterilised], upper=beta)
    for k in species:
        host.row(f"species[{k}]", [(1.0, column) for column in counted[:, k]], gamma[k])
    problem = host.problem()
    inputs = np.column_stack([fixed, sterilised])
    for k, net in enumerate(nets):
        problem.add_predictor(net, inputs, survival[:, [k]], name=SPECIES[k])
    return Tree(problem, tuple(nets), tuple(trainings), planted, survival, counted, sterilised)


def _site(grid: int, rng: np.random.Generator) -> FloatArray:
    """(cells, 6) the fixed features: light falls from row to row, the rest is drawn cell by cell."""
    site = np.zeros((grid * grid, 6))
    least, most = LIGHT
    for cell in range(grid * grid):
        site[cell, 0] = most - (cell // grid) / grid * (most - least)
        site[cell, 1 + rng.integers(3)] = 1.0
        site[cell, 4] = float(rng.integers(2) == 0)
        site[cell, 5] = float(rng.integers(2) == 0)
    return site


def look_alike(seed: int, rows: int = 2800) -> tuple[IntArray, FloatArray, FloatArray]:
    """Made-up data with the real columns: species (by index), features, survival."""
    rng = np.random.default_rng(seed)
    species = rng.integers(len(SPECIES), size=rows)
    light = rng.uniform(*LIGHT, rows)
    level = np.digitize(light, [0.075, 0.11])
    myco, soil = species < 2, rng.random(rows) < 0.45
    sterile = rng.random(rows) < 0.15
    soil &= ~sterile
    X = np.column_stack([light, level == 0, level == 1, level == 2, myco, soil, sterile]).astype(np.float64)
    score = (
        np.array([-1.0, -0.6, 0.9, 0.5])[species]
        + 9.0 * (light - 0.09)
        + np.array([1.2, 0.9, -0.3, 0.4])[species] * sterile
        - 0.6 * (soil == myco)
    )
    survived = (rng.random(rows) < 1.0 / (1.0 + np.exp(-score))).astype(np.float64)
    return species, X, survived


def _read(path: Path) -> tuple[IntArray, FloatArray, FloatArray]:
    records = files.read_records(path)

    def column(name: str) -> np.ndarray:
        return np.array([entry.strip().lower() for entry in files.column(path, records, name)])

    known = [name.lower() for name in SPECIES]
    species = np.array([known.index(name) if name in known else -1 for name in column("Species")])
    level = column("Light_Cat")
    X = np.column_stack(
        [
            column("Light_ISF").astype(np.float64),
            level == "low",
            level == "med",
            level == "high",
            column("Myco") == "amf",
            column("SoilMyco") == "amf",
            column("Sterile") == "sterile",
        ]
    ).astype(np.float64)
    survived = (column("Event") != "1").astype(np.float64)
    kept = species >= 0
    return species[kept], X[kept], survived[kept]

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
import scipy.sparse as sp
import torch
from torch import nn

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import OptionError
from dovetail.core.mip import Mip
from dovetail.core.problem import Problem
from dovetail.run.result import Result
from dovetail_study.problems import data as files
from dovetail_study.problems import networks
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
    """One instance: the problem, its networks, and where everything is."""

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

    size = cells * kinds
    planted = np.arange(size).reshape(cells, kinds)
    survival, counted = planted + size, planted + 2 * size
    sterilised = 3 * size + np.arange(cells)
    fixed = 3 * size + cells + np.arange(cells * 6).reshape(cells, 6)
    eye, nothing = sp.eye_array(size), sp.csr_array((size, size))
    each_cell = sp.kron(sp.eye_array(cells), np.ones((1, kinds)))
    each_species = sp.kron(np.ones((1, cells)), sp.eye_array(kinds))
    A = sp.block_array(
        [
            [-eye, nothing, eye, None, None],
            [eye, -eye, eye, None, None],
            [each_cell, None, None, None, None],
            [sp.csr_array(np.tile(price, cells)[None, :]), None, None, None, None],
            [None, None, None, np.ones((1, cells)), None],
            [None, None, each_species, None, sp.csr_array((kinds, cells * 6))],
        ]
    )
    infinity = np.inf
    mip = Mip(
        cost=np.repeat([0.0, 1.0, 0.0], [2 * size, size, 7 * cells]),
        A=A,
        row_lower=np.concatenate(
            [np.full(2 * size, -infinity), np.ones(cells), [-infinity, -infinity], gamma]
        ),
        row_upper=np.concatenate(
            [np.zeros(size), np.ones(size), np.ones(cells), [money, beta], np.full(kinds, infinity)]
        ),
        lower=np.concatenate([np.zeros(3 * size + cells), site.ravel()]),
        upper=np.concatenate([np.ones(3 * size + cells), site.ravel()]),
        integer=np.repeat([True, False, True, False], [size, 2 * size, cells, 6 * cells]),
        sense="max",
        names=_names(cells),
    )
    problem = Problem(mip)
    inputs = np.column_stack([fixed, sterilised])
    for k, net in enumerate(nets):
        problem.add_predictor(net, inputs, survival[:, [k]], name=SPECIES[k])
    return Tree(problem, tuple(nets), tuple(trainings), planted, survival, counted, sterilised)


def _names(cells: int) -> list[str]:
    """Of all columns, in their order."""
    kinds = ("planted", "survival", "counted")
    names = [f"{kind}[{i},{k}]" for kind in kinds for i in range(cells) for k in range(len(SPECIES))]
    names += [f"sterilised[{i}]" for i in range(cells)]
    return names + [f"{feature}[{i}]" for i in range(cells) for feature in GIVEN]


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

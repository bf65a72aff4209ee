"""Palatable diet: the cheapest basket that feeds a person and that people would eat.

    min  sum_i c_i x_i
    s.t. sum_i n_ij x_i >= r_j                for each nutrient j
         y = f(x),   t <= y <= 1,   0 <= x_i <= 10,   salt and sugar fixed

Amounts are in 100 g a day; salt and sugar are fixed because the data holds one value of each.

SurrogateLIB's palatable diet (Maragno et al.'s World Food Programme case). In the original the training rows
are shuffled without a seed and features are not scaled; here every draw is seeded, and features are
standardised for the training, with the scaling folded into the network. Two properties are kept, since they
are the problem: x goes to 10 while no food of the data goes past 6 (the fortified ones not past 0.2), so the
network is evaluated on diets it has never seen; and the real nutrition table has a slip (the protein of
fortified sorghum grits repeats their energy), which makes that food a cheap source of protein.

In the look-alike the nutrition table, the prices and the requirements are made up as well: the requirements
are nine tenths of what its most palatable diet gives, so that there is a diet which meets them all.
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
from dovetail.core.mip import Mip
from dovetail.core.problem import Problem
from dovetail_study.problems import data as files
from dovetail_study.problems import networks
from dovetail_study.problems.training import Regression, train_regressor

FOODS = (
    "Beans", "Bulgur", "Cheese", "Fish", "Meat", "CSB", "Dates", "DSM", "Milk", "Salt", "Lentils", "Maize",
    "Maize meal", "Chickpeas", "Rice", "Sorghum", "Soya-fortified bulgur wheat", "Soya-fortified maize meal",
    "Soya-fortified sorghum grits", "Soya-fortified wheat flour", "Sugar", "Oil", "Wheat", "Wheat flour",
    "WSB",
)  # fmt: skip
NUTRIENTS = (
    "Energy(kcal)", "Protein(g)", "Fat(g)", "Calcium(mg)", "Iron(mg)", "VitaminA(ug)", "ThiamineB1(mg)",
    "RiboflavinB2(mg)", "NicacinB3(mg)", "Folate(ug)", "VitaminC(mg)", "Iodine(ug)",
)  # fmt: skip
DIETS, TABLES = "WFP/palatable_data.csv", "WFP/instance_data.xlsx"
SUPPLIER = "Amman S"
"""The supplier whose prices are used: one row of the sheet FoodCost."""
FIXED = {"Salt": 0.05, "Sugar": 0.2}
"""The only values that the data holds."""
MOST = 10.0
"""Largest amount of any food as in SurrogateLIB, in 100 g a day."""


@dataclass(frozen=True)
class _FoodGroup:
    """Foods of one kind in the look-alike, in round numbers."""

    foods: tuple[str, ...]
    total: tuple[float, float]
    """Least and most of the group in a diet."""
    ideal: float
    """The preferred amount of the group."""
    price: float
    nutrition: tuple[float, ...]
    """Nutrients in 100 g, in the order of NUTRIENTS."""


_GROUPS = (
    _FoodGroup(
        ("Bulgur", "Maize", "Maize meal", "Rice", "Sorghum", "Wheat", "Wheat flour"),
        (2.0, 6.0), 3.8, 350.0, (350, 11, 2, 20, 4, 0, 0.3, 0.1, 3.5, 25, 0, 0),
    ),
    _FoodGroup(
        ("Beans", "Lentils", "Chickpeas"),
        (0.3, 1.0), 0.6, 650.0, (340, 21, 1, 110, 7, 0, 0.5, 0.2, 2.5, 100, 0, 0),
    ),
    _FoodGroup(
        ("Cheese", "Fish", "Meat", "DSM", "Milk"),
        (0.1, 0.6), 0.3, 1600.0, (320, 27, 14, 600, 2, 400, 0.25, 0.75, 2, 20, 0, 0),
    ),
    _FoodGroup(("CSB", "WSB"), (0.6, 0.9), 0.65, 900.0, (375, 19, 6, 600, 20, 500, 1, 0.55, 8, 30, 40, 0)),
    _FoodGroup(
        tuple(food for food in FOODS if food.startswith("Soya")),
        (0.0, 0.2), 0.1, 500.0, (365, 15, 1.3, 120, 4, 120, 0.45, 0.2, 3.5, 30, 0, 0),
    ),
    _FoodGroup(("Dates",), (0.0, 1.0), 0.2, 2000.0, (245, 2, 0.5, 30, 1, 0, 0.1, 0.1, 2, 13, 0, 0)),
    _FoodGroup(("Oil",), (0.15, 0.4), 0.25, 1000.0, (885, 0, 100, 0, 0, 0, 0, 0, 0, 0, 0, 0)),
    _FoodGroup(("Salt",), (0.05, 0.05), 0.05, 500.0, (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3000)),
    _FoodGroup(("Sugar",), (0.2, 0.2), 0.2, 700.0, (400, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Needs:
    """The nutrients and prices of foods, and a person's requirements."""

    nutrition: FloatArray
    """(25, 12) of 100 g of each food."""
    price: FloatArray
    """(25,)"""
    required: FloatArray
    """(12,) a day."""


@dataclass(frozen=True, eq=False)
class Diet:
    """One instance: the problem, its network, and the columns of its variables."""

    problem: Problem
    network: nn.Module
    training: Regression
    needs: Needs
    foods: IntArray
    """(25,) columns of the amounts."""
    palatability: int
    """Column of the network's output."""


def diet(
    network: str = "2x16",
    *,
    seed: int = 42,
    data: str | Path | None = None,
    epochs: int = 40,
    allow_constant: bool = False,
) -> Diet:
    """A trained network and a person to feed, from real or look-alike data."""
    diets, tables = files.find(DIETS, data), files.find(TABLES, data)
    if diets is None or tables is None:
        X, liked, needs = look_alike(seed)
    else:
        X, liked = files.complete_rows(diets, FOODS, "label")
        needs = _read_needs(tables)
    torch.manual_seed(seed)
    net = networks.build(network, len(FOODS))
    training = train_regressor(net, X, liked, seed=seed, epochs=epochs, allow_constant=allow_constant)
    return formulate(needs, float(np.random.default_rng(seed).uniform(0.5, 0.52)), net, training)


def formulate(needs: Needs, least: float, network: nn.Module, training: Regression) -> Diet:
    """The model for given tables, the least palatability, and a network that takes amounts."""
    foods, palatability = np.arange(len(FOODS)), len(FOODS)
    mip = Mip(
        cost=[*needs.price, 0.0],
        A=np.column_stack([needs.nutrition.T, np.zeros(len(NUTRIENTS))]),
        row_lower=needs.required,
        row_upper=np.inf,
        lower=[*(FIXED.get(food, 0.0) for food in FOODS), least],
        upper=[*(FIXED.get(food, MOST) for food in FOODS), 1.0],
        names=[*FOODS, "palatability"],
        row_names=NUTRIENTS,
    )
    problem = Problem(mip)
    problem.add_predictor(network, foods, [palatability], name="palatability")
    return Diet(problem, network, training, needs, foods, palatability)


def look_alike(seed: int, rows: int = 5000) -> tuple[FloatArray, FloatArray, Needs]:
    """Made-up diets, how they are liked, and tables to go with them.

    A diet shares out a total over one or two foods of each group. It is liked the better, the nearer
    its totals are to an ideal and the more it is made of well-liked foods, which are the expensive ones of
    their group, so that cheap diets are not palatable. Palatability is the share of diets that are liked
    less.
    """
    rng = np.random.default_rng(seed)
    X = np.zeros((rows, len(FOODS)))
    score = 0.03 * rng.standard_normal(rows)
    nutrition, price = np.zeros((len(FOODS), len(NUTRIENTS))), np.zeros(len(FOODS))
    for group in _GROUPS:
        places = np.array([FOODS.index(food) for food in group.foods])
        taste = rng.uniform(-1.0, 1.0, places.size)
        least, most = group.total
        total = rng.uniform(least, most, rows)
        X[:, places] = total[:, None] * _shares(rows, places.size, rng)
        if most > least:
            score += 0.4 * X[:, places] @ taste / most - ((total - group.ideal) / (most - least)) ** 2
        varied = np.exp(0.2 * rng.standard_normal((places.size, len(NUTRIENTS))))
        nutrition[places] = group.nutrition * varied
        price[places] = group.price * np.exp(0.5 * taste)
    liked = 0.06 + 0.93 * score.argsort().argsort() / rows
    return X, liked, Needs(nutrition, price, 0.9 * X[np.argmax(liked)] @ nutrition)


def _shares(rows: int, foods: int, rng: np.random.Generator) -> FloatArray:
    """(rows, foods) shares that add up to 1, of at most two foods each."""
    order = rng.random((rows, foods)).argsort(axis=1)
    cut = np.where(rng.random(rows) < 0.5, 1.0, rng.random(rows))
    shares = np.zeros((rows, foods))
    shares[np.arange(rows), order[:, 0]] += cut
    shares[np.arange(rows), order[:, -1]] += 1.0 - cut
    return shares


def _read_needs(path: Path) -> Needs:
    """Foods and nutrients are found by name, whatever their order in the three sheets."""
    values = files.read_sheet(path, "nutr_val")
    order = files.column(path, values, "Food")
    lost = [food for food in FOODS if food not in order]
    if lost:
        raise OptionError(f"{path} has no row for {lost[0]!r} in the sheet nutr_val.")
    nutrition = files.numbers(path, values, NUTRIENTS)[[order.index(food) for food in FOODS]]
    _require_no_gap(path, NUTRIENTS, nutrition)
    offers = files.read_sheet(path, "FoodCost")
    suppliers = files.column(path, offers, "Supplier")
    if SUPPLIER not in suppliers:
        raise OptionError(f"{path} has no row for {SUPPLIER!r} in the sheet FoodCost.")
    price = files.numbers(path, offers, FOODS)[suppliers.index(SUPPLIER)]
    _require_no_gap(path, FOODS, price)
    required = files.numbers(path, files.read_sheet(path, "nutr_req"), NUTRIENTS)[0]
    _require_no_gap(path, NUTRIENTS, required)
    return Needs(nutrition, price, required)


def _require_no_gap(path: Path, names: Sequence[str], table: FloatArray) -> None:
    """A diet with a missing value is left out; a table with a missing value is refused."""
    gaps = np.flatnonzero(np.isnan(np.atleast_2d(table)).any(axis=0))
    if gaps.size:
        raise OptionError(f"{path}: {names[int(gaps[0])]!r} has an empty entry.")

"""The register of predictors: the newest is asked first, and what cannot be turned into one is named."""

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.core import predictor
from dovetail.core.predictor import as_predictor


class Recipe:
    def __init__(self, factor):
        self.factor = factor


@pytest.fixture(autouse=True)
def _register(monkeypatch):
    monkeypatch.setattr(predictor, "_register", list(predictor._register))


def test_a_function_is_a_predictor_at_once():
    X = np.array([[1.0, 2.0]])
    assert as_predictor(lambda X: X.sum(axis=1)).predict(X).tolist() == [[3.0]]


def test_the_newest_is_asked_first():
    dt.register_predictor(Recipe, lambda recipe: lambda X: X * 1.0)
    dt.register_predictor(Recipe, lambda recipe: lambda X: X * recipe.factor)
    assert as_predictor(Recipe(5.0)).predict(np.array([[2.0]])).tolist() == [[10.0]]


def test_builders_may_hand_on_to_each_other_but_not_in_a_circle():
    dt.register_predictor(Recipe, lambda recipe: torch.nn.Identity())
    assert as_predictor(Recipe(1.0)).predict(np.array([[2.0]])).tolist() == [[2.0]]
    dt.register_predictor(Recipe, lambda recipe: Recipe(1.0))
    with pytest.raises(dt.PredictorError, match="calls itself without end"):
        as_predictor(Recipe(1.0))


@pytest.mark.parametrize(
    ("build", "said"),
    [(lambda recipe: 7, "returned builtins.int"), (lambda recipe: 1 / 0, "failed: ZeroDivisionError")],
)
def test_builders_that_do_not_build(build, said):
    dt.register_predictor(Recipe, build)
    with pytest.raises(dt.PredictorError, match=said):
        as_predictor(Recipe(1.0))


def test_what_nobody_knows_is_named_with_the_way_out():
    with pytest.raises(dt.PredictorError, match=r"Recipe is not a predictor.*register_predictor\(Recipe"):
        as_predictor(Recipe(1.0))
    with pytest.raises(dt.PredictorError, match="takes a class"):
        dt.register_predictor("Recipe", None)

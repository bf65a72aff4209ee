"""A predictor library in one file passes the suite, and predictors that break the contract do not."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.core import predictor as register
from dovetail.core.predictor import as_predictor
from dovetail.testing import PredictorCase, PredictorSuite


class Recipe:
    """A class dovetail knows nothing of."""

    def __init__(self):
        self.weights = np.array([1.0, -2.0, 0.5])

    def cook(self, X):
        return np.tanh(X @ self.weights)[:, None]


class Forgetful(Recipe):
    def cook(self, X):
        self.weights = self.weights + 0.0  # the same numbers in another place are fine
        return super().cook(X)


class Learning(Recipe):
    def cook(self, X):
        self.weights *= 1.0 - 1e-12
        return super().cook(X)


class Social(Recipe):
    def cook(self, X):
        return super().cook(X) + 1e-3 * len(X)


class RecipeCase(PredictorCase):
    is_float64, close = True, 1e-10
    freezes = False  # a function can only be called
    kind = Recipe

    def make(self, folder):
        return self.kind()

    def answer(self, owner, X):
        return type(owner)().cook(X) if owner.weights[0] == 1.0 else owner.cook(X)

    def state(self, owner):
        return [owner.weights.tobytes()]

    def change(self, owner):
        owner.weights += 1.0


@pytest.fixture(autouse=True)
def _restored(monkeypatch):
    monkeypatch.setattr(register, "_register", [*register._register])
    dt.register_predictor(Recipe, lambda recipe: recipe.cook)


class TestRecipe(PredictorSuite):
    cases = tuple(
        RecipeCase(kind.__name__, called="cook", features=3, kind=kind, smooth=False)
        for kind in (Recipe, Forgetful)
    )


def case_of(kind=Recipe, **fields):
    return RecipeCase("broken", called="cook", features=3, kind=kind, **fields)


def test_an_owner_that_is_changed_is_seen(tmp_path):
    with pytest.raises(AssertionError):
        PredictorSuite().test_the_owner_gets_it_back_as_it_was(case_of(Learning), tmp_path)


def test_rows_that_influence_each_other_are_seen():
    owner = Social()
    with pytest.raises(AssertionError):
        PredictorSuite().test_rows_do_not_influence_each_other(case_of(Social), (owner, as_predictor(owner)))


@pytest.mark.parametrize(
    "fields", [{"is_float64": False}, {"smooth": True}, {"device": "cuda:0"}, {"has_float64_copy": False}]
)
def test_a_case_that_says_something_else_is_seen(fields):
    owner = Recipe()
    with pytest.raises(AssertionError):
        PredictorSuite().test_what_it_says_of_itself_is_true(case_of(**fields), (owner, as_predictor(owner)))

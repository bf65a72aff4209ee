"""Classes of the user's own, and predictors in dtypes other than float64."""

import logging

import numpy as np
import pytest
import torch
from torch import nn

import dovetail as dt
from dovetail.core import predictor as register
from dovetail.core.predictor import as_predictor
from dovetail.predictors.torch.module import TorchPredictor
from tests.conformance import nets

X = np.random.default_rng(0).uniform(-1, 1, (6, 2))


@pytest.fixture(autouse=True)
def _restored(monkeypatch):
    monkeypatch.setattr(register, "_register", [*register._register])


class Recipe:
    """A class dovetail knows nothing of."""

    def __init__(self, weights):
        self.weights = np.asarray(weights)

    def cook(self, X):
        return np.tanh(X @ self.weights)


def as_module(recipe):
    net = nn.Sequential(nn.Linear(2, 1, bias=False), nn.Tanh()).double()
    net[0].weight.data = torch.tensor(recipe.weights[None])
    return net


def tied(predictor, outputs=1, features=2, **options):
    limits = {"lower": [-1.0] * features + [-9.0] * outputs, "upper": [1.0] * features + [9.0] * outputs}
    problem = dt.Problem(dt.Mip(cost=[0.0] * features + [1.0] * outputs, **limits))
    return problem, problem.add_predictor(
        predictor, range(features), range(features, features + outputs), **options
    )


class TestRegistering:
    def test_a_predicate_and_a_function_that_makes_a_function(self):
        dt.register_predictor(lambda thing: hasattr(thing, "cook"), lambda recipe: recipe.cook)
        assert np.array_equal(as_predictor(Recipe([1.0, 1.0])).predict(X)[:, 0], np.tanh(X.sum(axis=1)))

    def test_what_is_built_may_be_registered_too(self):
        class Book(list):
            pass

        dt.register_predictor(Recipe, as_module)
        dt.register_predictor(Book, lambda book: book[0])
        assert isinstance(as_predictor(Book([Recipe([1.0, 2.0])])), TorchPredictor)

    def test_the_newest_is_asked_first_even_before_torch(self):
        class Doubled(nn.Linear):
            pass

        dt.register_predictor(Doubled, lambda net: lambda X: X.sum(axis=1))
        dt.register_predictor(Doubled, lambda net: lambda X: 7.0 * X.sum(axis=1))
        assert np.array_equal(as_predictor(Doubled(2, 1)).predict(X)[:, 0], 7.0 * X.sum(axis=1))


class TestMistakes:
    def test_an_unknown_class_is_told_which_function_to_write(self):
        with pytest.raises(dt.PredictorError) as raised:
            tied(Recipe([1.0, 1.0]))
        assert "tests.predictors.test_register.Recipe" in str(raised.value)
        assert "dovetail.register_predictor(Recipe, build)" in str(raised.value)
        assert "build(obj) returns a torch.nn.Module" in str(raised.value)

    @pytest.mark.parametrize("nonsense", [None, 3, [1, 2], Recipe([1.0])], ids=lambda n: type(n).__name__)
    def test_a_builder_that_returns_nonsense(self, nonsense):
        class Other:
            pass

        def confused(thing):
            return nonsense

        dt.register_predictor(Other, confused)
        with pytest.raises(dt.PredictorError, match=f"confused.*returned .*{type(nonsense).__name__}"):
            as_predictor(Other())

    def test_a_builder_that_returns_what_it_was_given(self):
        def lazy(thing):
            return thing

        dt.register_predictor(Recipe, lazy)
        with pytest.raises(dt.PredictorError, match="lazy, registered for .*Recipe, calls itself"):
            as_predictor(Recipe([1.0]))

    def test_a_circle_of_two(self):
        class Other:
            pass

        dt.register_predictor(Recipe, lambda thing: Other())
        dt.register_predictor(Other, lambda thing: Recipe([1.0]))
        with pytest.raises(dt.PredictorError, match="calls itself without end"):
            as_predictor(Recipe([1.0]))

    def test_a_builder_that_fails(self):
        def broken(recipe):
            return recipe.missing

        dt.register_predictor(Recipe, broken)
        with pytest.raises(
            dt.PredictorError, match="broken, registered for .*Recipe, failed: AttributeError"
        ):
            as_predictor(Recipe([1.0]))

    def test_a_predicate_that_fails_is_named(self):
        def careless(thing):
            return thing.kind == "mine"

        dt.register_predictor(careless, as_module)
        with pytest.raises(dt.PredictorError, match="careless, registered to recognise.*AttributeError"):
            as_predictor(nn.Linear(2, 1))

    @pytest.mark.parametrize(
        "arguments", [(Recipe, None), ("Recipe", as_module), (3, 4)], ids=["nothing", "text", "numbers"]
    )
    def test_arguments_that_are_no_functions(self, arguments):
        with pytest.raises(dt.PredictorError, match="register_predictor takes a class"):
            dt.register_predictor(*arguments)


# --- dtypes -----------------------------------------------------------------------------------------


def mlp():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))


SAID = {
    "float16": "float16",
    "bfloat16": "bfloat16",
    "float16-lstm": "float16",
    "float64-head-on-a-float32-body": "float64 and float32",
    "float16-in-the-code": "float16 and float32",
    "integer-buffer": "float16",
}


@pytest.mark.parametrize("kind", nets.DTYPES)
def test_other_dtypes_are_taken_and_said_once(kind, caplog):
    net = nets.DTYPES[kind][0]()
    with caplog.at_level(logging.INFO, "dovetail"):
        tied(net, features=nets.FEATURES)
    said = [record.message for record in caplog.records if "computes in" in record.message]
    assert said == [f"{type(net).__name__} computes in {SAID[kind]}; gradients use a float64 copy"]


def test_float64_is_not_worth_a_word(caplog):
    with caplog.at_level(logging.INFO, "dovetail"):
        tied(mlp().double())
    assert not [record for record in caplog.records if "computes in" in record.message]


def test_dtypes_that_do_not_fit_each_other():
    broken = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1).double())
    with pytest.raises(dt.PredictorError, match="failed on a batch.*same dtype"):
        tied(broken)


def test_what_has_no_numbers_is_refused_by_name():
    with pytest.raises(dt.PredictorError, match=r"Linear: weight is on the meta device.*load_state_dict"):
        as_predictor(nn.Linear(1, 1, device="meta"))
    with pytest.raises(dt.PredictorError, match="forgets returns None; let it return"):
        as_predictor(forgets).predict(np.zeros((3, 1)))


def forgets(X):
    """A function that lost its last line."""


def test_complex_weights_are_refused_by_name():
    class Phases(nn.Module):
        def __init__(self):
            super().__init__()
            self.phase = nn.Parameter(torch.ones(2, 1, dtype=torch.complex64))

        def forward(self, x):
            return (x.to(torch.complex64) @ self.phase).real

    with pytest.raises(dt.PredictorError, match="Phases: phase holds complex numbers"):
        tied(Phases())


def test_changed_to_another_dtype_after_it_was_added():
    net = mlp()
    problem, block = tied(net)
    assert block.description.dtypes == ("float32",)
    net.double()
    assert problem.renewed().blocks[0].description.is_float64
    assert np.allclose(block.predictor.predict(X), net(torch.tensor(X)).detach().numpy())

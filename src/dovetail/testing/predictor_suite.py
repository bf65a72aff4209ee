"""What every predictor has to pass, and how a test supplies one predictor to the suite."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

import dovetail as dt
from dovetail.core.arrays import FloatArray
from dovetail.core.check import Checker
from dovetail.core.mip import Mip
from dovetail.core.predictor import Predictor, as_predictor
from dovetail.core.problem import Problem
from dovetail.networks.layers import evaluate


class PredictorSuite:
    """The owner's own answer, the same map for gradients, and the owner's object untouched.

    Derive a class and set the cases; if dovetail does not know the class of the objects, register it first::

        import numpy as np
        import dovetail as dt
        from dovetail.testing import PredictorCase, PredictorSuite

        class Recipe:
            def __init__(self):
                self.weights = np.array([1.0, -2.0, 0.5])

            def cook(self, X):
                return np.tanh(X @ self.weights)[:, None]

        dt.register_predictor(Recipe, lambda recipe: recipe.cook)

        class RecipeCase(PredictorCase):
            is_float64, close = True, 1e-10
            freezes = False  # a function can only be called

            def make(self, folder):
                return Recipe()

            def answer(self, owner, X):
                return owner.cook(X)

            def state(self, owner):
                return [owner.weights.tobytes()]

            def change(self, owner):
                owner.weights += 1.0

        class TestRecipe(PredictorSuite):
            cases = (RecipeCase("recipe", called="cook", features=3),)
    """

    cases: ClassVar[Sequence[PredictorCase]]
    """What is tested."""

    _made: ClassVar[dict[str, tuple[Any, Predictor]]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._made = {}

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Every test once for each case."""
        if "case" in metafunc.fixturenames:
            metafunc.parametrize("case", self.cases, ids=str)

    @pytest.fixture
    def only_read(
        self,
        case: PredictorCase,
        tmp_path_factory: pytest.TempPathFactory,
    ) -> tuple[Any, Predictor]:
        """The owner's object and its predictor, made once for the tests that change nothing."""
        if case.label not in self._made:
            owner = case.make(tmp_path_factory.mktemp("owner"))
            self._made[case.label] = owner, as_predictor(owner)
        return self._made[case.label]

    def test_predict_is_the_owner_s_own_answer(
        self, case: PredictorCase, only_read: tuple[Any, Predictor]
    ) -> None:
        """To the last bit, where the predictor calls the owner's object."""
        (owner, predictor), X = only_read, case.points()
        truth, said = case.answer(owner, X), predictor.predict(X)
        assert said.dtype == np.float64
        assert said.shape == (len(X), case.outputs)
        assert np.array_equal(said, truth) if case.identical else apart(said, truth) <= case.close

    def test_rows_do_not_influence_each_other(
        self, case: PredictorCase, only_read: tuple[Any, Predictor]
    ) -> None:
        """Backwards, alone, and none at all."""
        (_, predictor), X = only_read, case.points()
        said = predictor.predict(X)
        assert apart(predictor.predict(X[::-1])[::-1], said) <= case.close
        for i in (0, len(X) - 1):
            assert apart(predictor.predict(X[i : i + 1]), said[i : i + 1]) <= case.close
        assert predictor.predict(X[:0]).shape == (0, case.outputs)

    def test_other_batches_stay_within_what_the_check_allows(
        self, case: PredictorCase, tmp_path: Path
    ) -> None:
        """Rows evaluated alone, in halves and in reverse order: their answers agree within the measured
        rounding."""
        X = case.points()[:7]
        problem = tied(case, case.make(tmp_path), case.points(), samples=len(X))
        block = problem.blocks[0]
        x = np.zeros(problem.mip.n_columns)
        x[block.inputs] = X
        x = problem.predict(x)
        allowed = Checker(problem).allowance(x)[0][block.outputs]
        predict = block.predictor.predict
        one_by_one = np.concatenate([predict(X[i : i + 1]) for i in range(len(X))])
        halves = np.concatenate([predict(X[:3]), predict(X[3:])])
        for said in (halves, one_by_one, predict(X[::-1])[::-1]):
            assert np.all(np.abs(said - x[block.outputs]) <= allowed)
        x[block.outputs] = one_by_one
        assert dt.check(problem, x).within()

    def test_the_copy_says_the_same_and_its_gradient_is_a_difference(
        self, case: PredictorCase, only_read: tuple[Any, Predictor]
    ) -> None:
        """The snapshot is the same map, in float64."""
        (_, predictor), X = only_read, case.points()
        forward = predictor.snapshot("cpu")
        values, slope, weights = slope_of(forward, X)
        assert values.dtype == torch.float64
        assert apart(values.numpy(), predictor.predict(X)) <= case.close
        wrong = np.zeros(len(X), dtype=bool)
        for j, spread in enumerate(X.std(axis=0)):
            if j in case.whole:  # answers between whole numbers are ignored
                continue
            step = 1e-6 * spread * np.eye(case.features)[j]
            with torch.no_grad():
                rise = (forward(torch.tensor(X + step)) - forward(torch.tensor(X - step))) @ weights
            difference = rise.numpy() / (2.0 * step[j])
            wrong |= np.abs(slope[:, j] - difference) > 1e-5 * np.maximum(1.0 / spread, np.abs(difference))
        assert wrong.sum() <= len(X) // 50  # one of many points may lie at a kink

    def test_what_it_says_of_itself_is_true(
        self, case: PredictorCase, only_read: tuple[Any, Predictor]
    ) -> None:
        """The description shows a lower precision; smoothness and a final sigmoid are as the case states."""
        (_, predictor), X = only_read, case.points()
        said = predictor.describe(X)
        assert isinstance(predictor, Predictor)
        assert (said.name, said.device) == (case.called, case.device)
        assert (said.is_float64, said.has_float64_copy) == (case.is_float64, case.has_float64_copy)
        assert said.features in (None, case.features)
        assert said.outputs in (None, case.outputs)
        assert said == predictor.describe(X)
        error = apart(predictor.snapshot("cpu")(torch.tensor(X)).detach().numpy(), predictor.predict(X))
        assert error <= DOUBLE if said.is_float64 else error > 1e-13 or not said.has_float64_copy
        assert case.smooth is None or said.smooth == case.smooth
        assert case.sigmoid is None or said.ends_in_sigmoid is case.sigmoid

    def test_the_owner_gets_it_back_as_it_was(self, case: PredictorCase, tmp_path: Path) -> None:
        """The object is unchanged after all calls that a solve makes."""
        owner, X = case.make(tmp_path), case.points()
        before, seen = case.state(owner), X.copy()
        problem = tied(case, owner, X)
        predictor, layers = problem.blocks[0].predictor, problem.blocks[0].description.layers
        predictor.predict(X)
        slope_of(predictor.snapshot("cpu"), X)
        if case.layers:
            assert layers is not None
            layers()
        assert case.state(owner) == before
        assert np.array_equal(X, seen)

    def test_a_solve_leaves_it_as_it_was(self, case: PredictorCase, tmp_path: Path) -> None:
        """And its answer is the owner's."""
        owner = case.make(tmp_path)
        before, problem = case.state(owner), tied(case, owner, case.points())
        result = dt.solve(problem, dt.DualDecomposition(iterations=1), log=False)
        assert result.x is not None
        assert dt.check(problem, result.x).within()
        assert case.state(owner) == before

    def test_a_copy_stays_and_predict_follows_the_owner(self, case: PredictorCase, tmp_path: Path) -> None:
        """The owner may continue training after the problem is built: predictions follow, a snapshot does
        not."""
        owner, X = case.make(tmp_path), case.points()
        predictor, u = as_predictor(owner), torch.tensor(X)
        held, before = predictor.snapshot("cpu"), predictor.predict(X)
        copied = held(u).detach().clone()
        state = case.state(owner)
        case.change(owner)
        assert case.state(owner) != state
        now = case.answer(owner, X)
        assert apart(now, before) > 1e-3
        said = predictor.predict(X)
        assert apart(said, now if case.follows else before) <= case.close
        assert torch.equal(held(u), copied) == case.freezes
        assert apart(predictor.snapshot("cpu")(u).detach().numpy(), said) <= case.close

    def test_layers_compute_the_same(self, case: PredictorCase, only_read: tuple[Any, Predictor]) -> None:
        """If the layers are known they give the same values; otherwise an error states that they are
        unknown."""
        (_, predictor), X = only_read, case.points()
        layers = predictor.describe(X).layers
        if case.layers:
            assert layers is not None
            assert apart(evaluate(layers(), X), predictor.predict(X)) <= max(case.close, 1e-9)
        elif layers is not None:
            with pytest.raises(dt.UnsupportedError, match="cannot be written out"):
                layers()


def apart(a: FloatArray, b: FloatArray) -> float:
    """The largest difference, relative to max(1, |value|)."""
    assert a.shape == b.shape
    return float(np.max(np.abs(a - b) / np.maximum(1.0, np.abs(b)), initial=0.0))


def tied(case: PredictorCase, owner: Any, X: FloatArray, samples: int = 1) -> Problem:
    """A problem around the box of some points whose objective is the sum of all outputs."""
    d, q = case.features, case.outputs
    inputs = np.arange(samples * d).reshape(samples, d)
    outputs = samples * d + np.arange(samples * q).reshape(samples, q)
    free = np.full(samples * q, np.inf)
    whole = np.isin(np.arange(d), case.whole)
    mip = Mip(
        cost=np.repeat([0.0, 1.0], [samples * d, samples * q]),
        lower=np.concatenate([np.tile(X.min(axis=0), samples), -free]),
        upper=np.concatenate([np.tile(X.max(axis=0), samples), free]),
        integer=np.concatenate([np.tile(whole, samples), np.zeros(samples * q, dtype=bool)]),
    )
    problem = Problem(mip)
    problem.add_predictor(owner, inputs, outputs)
    return problem


def slope_of(forward: Callable[[Tensor], Tensor], X: FloatArray) -> tuple[Tensor, FloatArray, Tensor]:
    """Values, and the gradient of one sum of them with the weights of that sum."""
    u = torch.tensor(X, requires_grad=True)
    values = forward(u)
    weights = torch.linspace(1.0, 2.0, values.shape[1], dtype=torch.float64)
    (slope,) = torch.autograd.grad((values @ weights).sum(), u)
    return values.detach(), slope.numpy(), weights


SINGLE, DOUBLE = 1e-5, 1e-10
"""How close a copy is to an owner that computes in float32, in float64; relative to max(1, |value|)."""


class PredictorCase(ABC):
    """An object that dovetail takes for a predictor, with the words of its own library.

    Derive a class that defines the four methods, and set the expected properties in its fields. `label` is
    how the tests call the case, `called` how dovetail's messages call the predictor.
    """

    is_float64 = False
    """Whether the owner computes in float64."""
    has_float64_copy = True
    """Whether a copy for gradients can compute in float64."""
    device = "cpu"
    """Where the owner computes."""
    identical = True
    """Whether predict is the owner's answer to the last bit."""
    follows = True
    """Whether predictions follow changes of the owner's object; a file is read once."""
    freezes = True
    """Whether a snapshot keeps the weights that it was made from; a plain function can only be called."""
    layers = False
    """Whether its layers are known."""
    smooth: bool | None = None
    """Whether second derivatives are useful; None if unspecified."""
    sigmoid: bool | None = None
    """Whether the predictor is known to end, or not to end, in a sigmoid; None if unspecified."""
    whole: tuple[int, ...] = ()
    """Features that accept integers only; the points must have integer values there."""
    close = SINGLE
    """How close the copy for gradients is, relative to max(1, |value|)."""

    def __init__(self, label: str, *, called: str, features: int, outputs: int = 1, **fields: Any) -> None:
        self.label, self.called, self.features, self.outputs = label, called, features, outputs
        for name, value in fields.items():
            assert hasattr(self, name), name
            setattr(self, name, value)

    def __str__(self) -> str:
        return self.label

    def points(self) -> FloatArray:
        """(n, features) where the predictor is asked; the answers there should not be all alike."""
        return np.random.default_rng(0).uniform(-2, 2, (7, self.features))

    @abstractmethod
    def make(self, folder: Path) -> Any:
        """The owner's object, made anew; files go to `folder`."""
        ...

    @abstractmethod
    def answer(self, owner: Any, X: FloatArray) -> FloatArray:
        """The library's own answer in the form that its users get; (n, outputs), float64."""
        ...

    @abstractmethod
    def state(self, owner: Any) -> list[Any]:
        """All state that a solve must not change, as objects that `==` compares."""
        ...

    @abstractmethod
    def change(self, owner: Any) -> None:
        """Other weights in the same object, so that its answers change by more than 1e-3."""
        ...

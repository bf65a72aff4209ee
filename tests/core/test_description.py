"""What predictors say of themselves: dtypes by name, lazy layers, and the smallest predictor there is."""

import doctest
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.core import description, predictor
from dovetail.core.description import Description
from dovetail.core.predictor import Predictor, as_predictor
from tests.small import random_mlp


@pytest.mark.parametrize("module", [predictor, description], ids=["predictor", "description"])
def test_the_examples_in_the_docstrings_run(module):
    """The whole predictor that others are told to copy is one of them."""
    found = doctest.testmod(module)
    assert found.attempted > 0 and found.failed == 0


@pytest.mark.parametrize(
    ("dtypes", "is_float64", "narrowest"),
    [
        (("float64",), True, "float64"),
        (("float64", "float32"), False, "float32"),
        (("bfloat16", "float16", "float64"), False, "bfloat16"),
        (("float8_e5m2", "float32"), False, "float8_e5m2"),
    ],
)
def test_the_narrowest_dtype_decides(dtypes, is_float64, narrowest):
    said = Description("net", dtypes=dtypes)
    assert said.is_float64 == is_float64
    assert said.narrowest_dtype == narrowest
    assert said.rounding == description.ROUNDING.get(narrowest, 0.15)


def test_it_is_frozen_and_equal_by_what_it_says():
    net = as_predictor(random_mlp(2, seed=1))
    one, other = net.describe(np.zeros((3, 2))), net.describe(np.ones((3, 2)))
    assert one == other  # though their layers are different calls
    with pytest.raises(FrozenInstanceError):
        one.smooth = True


def test_layers_that_cannot_be_had_are_none():
    def refuse(*features):
        raise dt.UnsupportedError("layer Odd cannot be written out")

    assert Description("net").layers_if_known() is None
    assert Description("net").program_if_known(2) is None
    refusing = Description("net", layers=refuse, program=refuse)
    assert refusing.layers_if_known() is None and refusing.program_if_known(2) is None
    assert Description("net", layers=lambda: ()).layers_if_known() == ()


class Scores:
    """A binary classifier: the score of its second class, or those of both."""

    def __init__(self, columns=1):
        self.columns = columns

    def predict(self, X):
        second = X[:, :1] - X[:, 1:2]
        return second if self.columns == 1 else np.hstack([-second, second])

    def snapshot(self, device):
        return lambda U: U[:, :1] - U[:, 1:2]

    def describe(self, X):
        return Description(
            "scores", features=2, outputs=self.columns, other_forms=(Scores(3 - self.columns),)
        )


def test_another_form_is_taken_where_the_columns_ask_for_it():
    assert isinstance(Scores(), Predictor)
    problem = dt.Problem(dt.Mip(cost=[0.0] * 5, lower=-1.0, upper=1.0))
    one = problem.add_predictor(Scores(), [0, 1], [2])
    two = problem.add_predictor(Scores(), [0, 1], [3, 4])
    assert (one.predictor.columns, two.predictor.columns) == (1, 2)
    assert (two.description.features, two.description.outputs) == (2, 2)
    with pytest.raises(dt.PredictorError, match="the numbers must be equal"):
        dt.Problem(problem.mip).add_predictor(Scores(), [0, 1], [2, 3, 4])


def test_the_wrong_number_of_features_is_refused_by_name():
    problem = dt.Problem(dt.Mip(cost=[0.0] * 4, lower=-1.0, upper=1.0))
    with pytest.raises(dt.PredictorError, match=r"3 variables per sample \(shape \(1, 3\)\).*scores takes 2"):
        problem.add_predictor(Scores(), [0, 1, 2], [3])


def test_several_labels_are_no_class():
    class Labels(Scores):
        def describe(self, X):
            return Description("labels", is_multilabel=True)

    problem = dt.Problem(dt.Mip(cost=[0.0] * 4, lower=-1.0, upper=1.0))
    with pytest.raises(dt.PredictorError, match="labels was trained on several labels"):
        problem.add_predictor(Labels(2), [0, 1], [2, 3], output_type="classification")
    problem.add_predictor(Labels(2), [0, 1], [2, 3])


def test_a_predictor_of_ones_own_that_only_has_layers_proves_nothing():
    """Its layers may be used to look for points; how it computes them nobody said."""
    plain = as_predictor(random_mlp(2))

    class Own:
        predict, snapshot = plain.predict, plain.snapshot

        def describe(self, X):
            return Description("own", layers=plain.layers)

    problem = dt.Problem(dt.Mip(cost=[0.0, 0.0, 1.0], lower=[-1.0, -1.0, -np.inf], upper=[1.0, 1.0, np.inf]))
    problem.add_predictor(Own(), [0, 1], [2])
    result = dt.solve(problem, dt.Auto(effort=1), log=False)
    assert result.status == "feasible" and result.bound is None
    assert "no bound" in result.message


def test_a_predictor_that_changed_is_described_anew():
    net = random_mlp(2, dtype=torch.float64)
    problem = dt.Problem(dt.Mip(cost=[0.0, 0.0, 1.0], lower=-99.0, upper=99.0))
    block = problem.add_predictor(net, [0, 1], [2])
    with torch.no_grad():
        net[0].weight.mul_(1.5)  # other weights are no other kind of predictor
    assert problem.renewed() is problem
    x = problem.predict(np.full(3, 0.3))
    assert dt.check(problem, x).precision.amount == 0.0
    net.float()
    now = problem.renewed()
    assert now is not problem and problem.blocks == (block,)
    assert (block.description.dtypes, now.blocks[0].description.dtypes) == (("float64",), ("float32",))
    assert 0.0 < dt.check(problem, problem.predict(x)).precision.amount < 1e-5  # it rounds now

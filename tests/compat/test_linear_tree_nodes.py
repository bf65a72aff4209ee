"""The tree that the summary of a linear tree is."""

from types import SimpleNamespace

import numpy as np
import pyomo.environ as pyo
import pytest
from dovetail.compat.omlt import OmltBlock
from dovetail.compat.omlt.linear_tree import (
    LinearTreeDefinition,
    LinearTreeGDPFormulation,
    LinearTreeHybridBigMFormulation,
)

import dovetail as dt


def leaf(slope, intercept):
    """As the linear-tree package has it: a fitted model of scikit-learn's."""
    coef = np.array(slope)
    model = SimpleNamespace(coef_=coef, intercept_=intercept, predict=lambda X: X @ coef + intercept)
    return {"models": model, "loss": 0.0, "samples": 9}


@pytest.fixture
def summary():
    """x0 <= 1: leaf 1; else x1 <= 0.5: leaf 3; else x0 <= 2: leaf 5, else leaf 6."""
    return {
        0: {"col": 0, "th": 1.0, "children": (1, 2)},
        1: leaf([1.0, 0.0], 0.5),
        2: {"col": 1, "th": 0.5, "children": (3, 4)},
        3: leaf([0.0, 2.0], -1.0),
        4: {"col": 0, "th": 2.0, "children": (5, 6)},
        5: leaf([0.0, 0.0], 7.0),
        6: leaf([-1.0, 1.0], 0.0),
    }


def test_a_summary_predicts_as_its_tree(summary):
    X = np.array([[1.0, 9.0], [1.5, 0.5], [2.0, 0.6], [2.5, 0.6]])
    assert LinearTreeDefinition(summary).predictor(X) == pytest.approx([1.5, 0.0, 7.0, -1.9])


@pytest.mark.parametrize("formulation", [LinearTreeGDPFormulation, LinearTreeHybridBigMFormulation])
def test_a_summary_in_a_block(summary, formulation):
    tree = LinearTreeDefinition(summary, unscaled_input_bounds={0: (0.0, 3.0), 1: (-1.0, 1.0)})
    assert (tree.n_inputs, tree.n_outputs, tree.is_scaled) == (2, 1, False)
    m = pyo.ConcreteModel()
    m.tree = OmltBlock()
    m.tree.build_formulation(formulation(tree))
    m.obj = pyo.Objective(expr=m.tree.outputs[0])
    for x, wanted in (((0.5, 0.25), 1.0), ((1.0, 1.0), 1.5), ((2.5, 0.75), -1.75)):
        for k in range(2):
            m.tree.inputs[k].fix(x[k])
        dt.solve(m, log=False)
        assert pyo.value(m.tree.outputs[0]) == pytest.approx(wanted)

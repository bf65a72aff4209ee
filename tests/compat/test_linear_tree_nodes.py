"""Splits and leaves of linear trees: what OMLT lists, and the tree that a summary alone is."""

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


def test_nodes_as_omlt_lists_them(summary):
    tree = LinearTreeDefinition(summary, unscaled_input_bounds={0: (0.0, 3.0), 1: (-1.0, 1.0)})
    splits, leaves = tree.splits[0], tree.leaves[0]
    assert (tree.n_inputs, tree.n_outputs, tree.is_scaled) == (2, 1, False)
    assert [*splits] == [0, 2, 4] and [*leaves] == [1, 3, 5, 6]
    assert splits[2]["left_leaves"] == [3] and splits[2]["right_leaves"] == [5, 6]
    assert splits[0]["right_leaves"] == [3, 5, 6] and "parent" not in splits[0]
    assert [node["parent"] for node in (splits[4], leaves[1], leaves[6])] == [2, 0, 4]
    assert tree.thresholds == {0: {0: {0: 1.0, 4: 2.0}, 1: {2: 0.5}}}
    assert [splits[k]["y_index"] for k in (0, 2, 4)] == [[0, 0], [1, 0], [0, 1]]
    assert leaves[6]["slope"] == [-1.0, 1.0] and leaves[3]["intercept"] == -1.0
    assert leaves[5]["bounds"] == {0: [1.0, 2.0], 1: [0.5, 1.0]}
    assert leaves[1]["bounds"] == {0: [0.0, 1.0], 1: [-1.0, 1.0]}
    assert "slope" not in summary[1] and len(summary) == 7  # it is its owner's


def test_a_summary_predicts_as_its_tree(summary):
    X = np.array([[1.0, 9.0], [1.5, 0.5], [2.0, 0.6], [2.5, 0.6]])
    assert LinearTreeDefinition(summary).predictor(X) == pytest.approx([1.5, 0.0, 7.0, -1.9])


def test_a_tree_without_a_summary_has_no_list():
    tree = SimpleNamespace(predict=lambda X: X[:, 0], n_features_in_=1)
    with pytest.raises(dt.UnsupportedError, match="no summary"):
        _ = LinearTreeDefinition(tree).splits


@pytest.mark.parametrize("formulation", [LinearTreeGDPFormulation, LinearTreeHybridBigMFormulation])
def test_a_summary_in_a_block(summary, formulation):
    tree = LinearTreeDefinition(summary, unscaled_input_bounds={0: (0.0, 3.0), 1: (-1.0, 1.0)})
    m = pyo.ConcreteModel()
    m.tree = OmltBlock()
    m.tree.build_formulation(formulation(tree))
    m.obj = pyo.Objective(expr=m.tree.outputs[0])
    for x, wanted in (((0.5, 0.25), 1.0), ((1.0, 1.0), 1.5), ((2.5, 0.75), -1.75)):
        for k in range(2):
            m.tree.inputs[k].fix(x[k])
        dt.solve(m, log=False)
        assert pyo.value(m.tree.outputs[0]) == pytest.approx(wanted)

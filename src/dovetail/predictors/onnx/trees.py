"""ONNX's `TreeEnsemble` operators (domain ai.onnx.ml), read into the flat form.

A graph with a single such operator (and names and casts after it) is a tree ensemble; the converters of
scikit-learn, XGBoost and LightGBM write tree models in this way. The input is float32 (or float64), and so
are the sums. A split on equality with a number, or with one of several numbers, sends to one side all
float64 values that equal the number after the cast: an interval, so that the feature may be any variable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import torch

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import PredictorError
from dovetail.core.tree_ensemble import Link, TreeEnsemble
from dovetail.predictors.onnx.module import OnnxGraph
from dovetail.predictors.onnx.node import OnnxNode
from dovetail.predictors.trees.assembly import LinePieces, ReadTree, assembled, largest_going_left

OPERATORS = ("TreeEnsembleRegressor", "TreeEnsembleClassifier", "TreeEnsemble")
FUNCTIONS: dict[str, Link] = {"NONE": "identity", "SOFTMAX": "softmax", "LOGISTIC": "sigmoid"}
MODES = (
    "BRANCH_LEQ",
    "BRANCH_LT",
    "BRANCH_GTE",
    "BRANCH_GT",
    "BRANCH_EQ",
    "BRANCH_NEQ",
    "BRANCH_MEMBER",
)
"""The comparisons of splits, in the order of newer models' numbers."""
THRESHOLDS = MODES[:4]
Members = dict[int, FloatArray]
"""By node the numbers of a membership split."""


def tree_node(graph: OnnxGraph) -> OnnxNode | None:
    """The tree ensemble node, if the graph is nothing else."""
    first, *after = graph.nodes or (None,)
    if first is None or first.domain != "ai.onnx.ml" or first.operator not in OPERATORS:
        return None
    casts = all(node.domain == "" and node.operator in ("Identity", "Cast") for node in after)
    return first if casts and first.inputs == (graph.input,) else None


def onnx_ensemble(graph: OnnxGraph, node: OnnxNode) -> TreeEnsemble:
    """The tree ensemble of the operator."""
    features = graph.sizes[1] if len(graph.sizes) == 2 else None
    if features is None:
        raise PredictorError(
            f"{graph.name}: its input has no number of features; export the model with a fixed number."
        )
    dtype: Literal["float64", "float32"] = "float64" if graph.dtype == torch.float64 else "float32"
    own = np.dtype(dtype)
    trees, base, link = (
        _read_newer_form(node, own) if node.operator == "TreeEnsemble" else _read_older_form(node, own)
    )
    return assembled(trees, features=features, base=base, link=link, dtype=dtype)


def is_classifier(node: OnnxNode) -> bool:
    """Whether its outputs are classes."""
    return node.operator == "TreeEnsembleClassifier"


Read = tuple[list[ReadTree], FloatArray, Link]
"""Trees with folded thresholds, the base and the link."""
Dtype = np.dtype[np.floating]


def _cuts_as_float64(cuts: FloatArray, strict: np.ndarray, dtype: Dtype) -> FloatArray:
    """The largest float64 that each split sends left; `strict` for splits by <."""
    own = cuts.astype(dtype)
    return largest_going_left(
        lambda x: np.where(strict, x.astype(dtype) < own, x.astype(dtype) <= own), cuts.size
    )


# --- TreeEnsembleRegressor and TreeEnsembleClassifier -----------------------------------------------


def _read_older_form(node: OnnxNode, dtype: Dtype) -> Read:
    """The older form: nodes and leaves are identified by tree and number; values of leaves are in a
    separate list."""
    classes = node.operator == "TreeEnsembleClassifier"
    part = "class" if classes else "target"
    outputs = _class_count(node) if classes else node.integer("n_targets", 1)
    node.passed_over("nodes_hitrates", "nodes_missing_value_tracks_true", "nodes_hitrates_as_tensor")
    where = [np.array(node.integers(f"nodes_{name}")) for name in ("treeids", "nodeids")]
    number = {(int(t), int(k)): i for i, (t, k) in enumerate(zip(*where, strict=True))}
    value = np.zeros((len(number), outputs))
    owners = zip(node.integers(f"{part}_treeids"), node.integers(f"{part}_nodeids"), strict=True)
    rows = np.array([number[t, k] for t, k in owners], dtype=np.int64)
    ids, weights = np.array(node.integers(f"{part}_ids"), dtype=np.int64), _numbers(node, f"{part}_weights")
    np.add.at(value, (rows, ids), weights)
    base = _numbers(node, "base_values") if _has(node, "base_values") else np.zeros(outputs)
    trees = list(_older_trees(node, where[0], number, value, dtype))
    if node.has("aggregate_function"):
        trees = _aggregated(node, node.text("aggregate_function"), trees)
    link = _link(node, node.text("post_transform", "NONE"))
    if classes and outputs == 2 and np.unique(ids).size == 1:
        return _one_score(node, trees, base, int(ids[0]), link)
    return trees, base if base.size == outputs else np.resize(base, outputs), link


def _older_trees(
    node: OnnxNode, tree: IntArray, number: dict[tuple[int, int], int], value: FloatArray, dtype: Dtype
) -> Iterator[ReadTree]:
    modes = np.array(node.texts("nodes_modes", ()))
    leaf = modes == "LEAF"
    _require_modes(node, set(modes[~leaf].tolist()), MODES[:-1])
    feature, cut = np.array(node.integers("nodes_featureids")), _numbers(node, "nodes_values")
    yes, no = (np.array(node.integers(f"nodes_{side}nodeids")) for side in ("true", "false"))
    for t in np.unique(tree):
        own = np.flatnonzero(tree == t)
        place = {int(i): k for k, i in enumerate(own)}
        to = [
            np.array([-1 if leaf[i] else place[number[int(t), int(side[i])]] for i in own])
            for side in (yes, no)
        ]
        asked = {k: cut[[i]] for k, i in enumerate(own) if modes[i] in ("BRANCH_EQ", "BRANCH_NEQ")}
        one = ReadTree(feature[own], cut[own], to[0], to[1], value[own])
        yield _ordered(node, one, modes[own], asked, _root(to), dtype)


def _root(sides: list[np.ndarray]) -> int:
    """The node that is no child."""
    free = np.setdiff1d(np.arange(sides[0].size), np.concatenate(sides))
    if free.size != 1:
        raise PredictorError("the trees are damaged: one of them has no root, or several.")
    return int(free[0])


def _class_count(node: OnnxNode) -> int:
    node.passed_over("classlabels_int64s", "classlabels_strings")
    labels = node.attributes.get("classlabels_int64s") or node.attributes.get("classlabels_strings")
    if not isinstance(labels, tuple):
        raise PredictorError(f"{node} does not say which classes there are; the file is damaged.")
    return len(labels)


def _one_score(node: OnnxNode, trees: list[ReadTree], base: FloatArray, k: int, link: Link) -> Read:
    """Two classes of which the trees give one score: the other is the complement."""
    trees = [tree._replace(value=tree.value[:, k : k + 1]) for tree in trees]
    if link == "sigmoid":
        return trees, base[-1:] if base.size else np.zeros(1), link
    positive = all(np.all(tree.value[tree.left < 0] >= 0.0) for tree in trees)
    if link != "identity" or not positive or np.any(base):
        raise node.refused("a class score of one class alone, but as a probability,")
    share = 1.0 / len(trees)
    pairs = [tree._replace(value=np.column_stack([share - tree.value, tree.value])) for tree in trees]
    return pairs, np.zeros(2), "identity"


# --- TreeEnsemble -----------------------------------------------------------------------------------


def _read_newer_form(node: OnnxNode, dtype: Dtype) -> Read:
    """The newer form: splits in one list, leaves in another, told apart by a flag."""
    modes = np.array(node.tensor("nodes_modes").numpy(), dtype=np.int64)
    _require_modes(node, {MODES[m] if m < len(MODES) else f"mode {m}" for m in np.unique(modes)}, MODES)
    node.passed_over("nodes_hitrates", "nodes_missing_value_tracks_true")
    whole, asked = _newer_nodes(node, modes), _newer_members(node, modes)
    leaves = whole.feature.size - modes.size
    names = np.array([*MODES, "LEAF"])[np.concatenate([modes, np.full(leaves, len(MODES))])]
    trees = [_ordered(node, whole, names, asked, root, dtype) for root in node.integers("tree_roots")]
    trees = _aggregated(node, ("AVERAGE", "SUM", "MIN", "MAX")[node.integer("aggregate_function", 1)], trees)
    after = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")[node.integer("post_transform", 0)]
    return trees, np.zeros(whole.value.shape[1]), _link(node, after)


def _newer_nodes(node: OnnxNode, modes: np.ndarray) -> ReadTree:
    """All splits, then all leaves; a tree of one leaf is a split with that leaf on both sides."""
    splits, feature = modes.size, np.array(node.integers("nodes_featureids"))
    sides = [
        np.where(np.array(node.integers(f"nodes_{side}leafs")) != 0, splits, 0)
        + np.array(node.integers(f"nodes_{side}nodeids"))
        for side in ("true", "false")
    ]
    target, weight = np.array(node.integers("leaf_targetids")), node.tensor("leaf_weights").double().numpy()
    value = np.zeros((splits + target.size, node.integer("n_targets")))
    value[splits + np.arange(target.size), target] = weight
    alone = np.flatnonzero((sides[0] == sides[1]) & (sides[0] >= splits) & (sides[0] < len(value)))
    value[alone] = value[sides[0][alone]]
    for side in sides:
        side[alone] = -1
    none = np.full(target.size, -1)
    return ReadTree(
        np.concatenate([feature, none * 0]),
        np.concatenate([node.tensor("nodes_splits").double().numpy(), np.zeros(target.size)]),
        np.concatenate([sides[0], none]),
        np.concatenate([sides[1], none]),
        value,
    )


def _newer_members(node: OnnxNode, modes: np.ndarray) -> Members:
    """The sets of membership splits, one after the other, each followed by NaN."""
    splits = node.tensor("nodes_splits").double().numpy()
    asked = {int(i): splits[[i]] for i in np.flatnonzero((modes == 4) | (modes == 5))}
    owners = np.flatnonzero(modes == len(MODES) - 1)
    if not owners.size:
        node.passed_over("membership_values")
        return asked
    listed = node.tensor("membership_values").double().numpy()
    sets = [part[~np.isnan(part)] for part in np.split(listed, np.flatnonzero(np.isnan(listed)) + 1)]
    if len(sets) > owners.size and sets[-1].size == 0:  # after the last NaN
        sets.pop()
    if len(sets) != owners.size:
        raise PredictorError(f"{node} has {len(sets)} sets of members for {owners.size} splits by them.")
    return asked | {int(i): members for i, members in zip(owners, sets, strict=True)}


# --- common to both ---------------------------------------------------------------------------------


def _ordered(
    node: OnnxNode, tree: ReadTree, modes: np.ndarray, asked: Members, root: int, dtype: Dtype
) -> ReadTree:
    """The nodes reachable from the root, which comes first; sides of reversed comparisons are exchanged."""
    reached, level = [root], [root]
    while level:
        level = [int(side[i]) for i in level if tree.left[i] >= 0 for side in (tree.left, tree.right)]
        reached += level
        if len(reached) > tree.feature.size or any(not 0 <= i < tree.feature.size for i in level):
            raise PredictorError("the trees are damaged: a child is no node, or has two parents.")
    kept = np.array(reached)
    place = np.full(tree.feature.size, -1)
    place[kept] = np.arange(kept.size)
    left, right = (np.where(side[kept] < 0, -1, place[side[kept]]) for side in (tree.left, tree.right))
    mode, cut = modes[kept], tree.threshold[kept].copy()
    more = (mode == "BRANCH_GTE") | (mode == "BRANCH_GT")
    left, right = np.where(more, right, left), np.where(more, left, right)
    compares = np.flatnonzero(np.isin(mode, THRESHOLDS) & (left >= 0))
    if np.any(np.isnan(cut[compares])):
        raise PredictorError("a tree has NaN for a threshold; train it again.")
    strict = np.isin(mode[compares], ("BRANCH_LT", "BRANCH_GTE"))
    cut[compares] = _cuts_as_float64(cut[compares], strict, dtype)
    pieces = {
        k: _pieces(node, asked[i], dtype).turned(mode[k] == "BRANCH_NEQ")
        for k, i in enumerate(reached)
        if i in asked and left[k] >= 0
    }
    cut[[*pieces]] = 0.0  # unused entries may be NaN
    return ReadTree(tree.feature[kept], cut, left, right, tree.value[kept], pieces)


def _pieces(node: OnnxNode, members: FloatArray, dtype: Dtype) -> LinePieces:
    """A membership split as pieces: members, after the cast, go left."""
    if not np.all(np.isfinite(members)):
        raise node.refused("a split by a number that is none, or infinite,")
    found = LinePieces(np.empty(0), np.zeros(1, dtype=bool))
    below, upto = (
        _cuts_as_float64(members, np.full(members.size, strict), dtype) for strict in (True, False)
    )
    for low, high in zip(below, upto, strict=True):
        found = found.but(low, high, goes_left=True)
    return found


def _aggregated(node: OnnxNode, how: str, trees: list[ReadTree]) -> list[ReadTree]:
    if how == "AVERAGE":
        return [tree.scaled(1.0 / len(trees)) for tree in trees]
    if how != "SUM":
        raise node.refused(f"the aggregation {how}, which is no sum,")
    return trees


def _link(node: OnnxNode, function: str) -> Link:
    if function not in FUNCTIONS:
        raise node.refused(f"the function {function}")
    return FUNCTIONS[function]


def _require_modes(node: OnnxNode, modes: set[str], known: Sequence[str]) -> None:
    for mode in sorted(modes - set(known)):
        raise node.refused(f"a split by {mode}")


def _has(node: OnnxNode, name: str) -> bool:
    return node.has(name) or node.has(f"{name}_as_tensor")


def _numbers(node: OnnxNode, name: str) -> FloatArray:
    """A list of floats, or a tensor of doubles under another name."""
    if node.has(f"{name}_as_tensor"):
        return np.asarray(node.tensor(f"{name}_as_tensor").double().numpy())
    return np.array(node.numbers(name), dtype=np.float64)

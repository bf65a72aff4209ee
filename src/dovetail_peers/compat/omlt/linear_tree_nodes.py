"""Splits and leaves of a linear tree, as OMLT lists them, from the summary that linear-tree gives.

A summary has a dictionary for each node: `children`, `col` and `th` of a split (left where the column is at
most the threshold), `models` of a leaf. The summary itself is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import OptionError

Node = dict[str, Any]
NOT_A_SUMMARY = (
    "a dictionary must be the summary of a linear tree, model.summary(): splits with their children, "
    "and leaves with their models; or give the linear tree itself, which has predict."
)


@dataclass(frozen=True, eq=False)
class LinearTreeNodes:
    """The nodes by number."""

    splits: dict[Any, Node]
    leaves: dict[Any, Node]
    root: Any

    @classmethod
    def of(
        cls, summary: Mapping[Any, Any], bounds: Mapping[Any, tuple[float, float]] | None
    ) -> LinearTreeNodes:
        """With parents, leaves on either side, slopes, and the box of each leaf within the inputs' bounds."""
        splits = {k: dict(node) for k, node in summary.items() if "children" in node}
        leaves = {k: dict(node) for k, node in summary.items() if k not in splits}
        children = [child for node in splits.values() for child in node["children"]]
        roots = set(summary) - set(children)
        complete = all(child in summary for child in children) and len(children) == len(set(children))
        if (
            not splits
            or not complete
            or len(roots) != 1
            or any("models" not in leaf for leaf in leaves.values())
        ):
            raise OptionError(NOT_A_SUMMARY)
        nodes = cls(splits, leaves, roots.pop())
        for k, split in splits.items():
            for child, side in zip(split["children"], ("left_leaves", "right_leaves"), strict=True):
                (splits if child in splits else leaves)[child]["parent"] = k
                split[side] = [*nodes._below(child)]
            split["y_index"] = [split["col"], [*nodes.thresholds[split["col"]]].index(k)]
        for leaf in leaves.values():
            leaf["slope"] = np.ravel(leaf["models"].coef_).tolist()
            leaf["intercept"] = float(np.ravel(leaf["models"].intercept_)[0])
        nodes._bound({j: list((bounds or {}).get(j, (None, None))) for j in range(nodes.features)})
        return nodes

    @property
    def features(self) -> int:
        """Inputs of the tree: those of its linear models."""
        return len(next(iter(self.leaves.values()))["slope"])

    @property
    def thresholds(self) -> dict[Any, dict[Any, float]]:
        """For each column that is split, the thresholds of its splits, least first."""
        ordered = sorted(self.splits.items(), key=lambda pair: pair[1]["th"])
        columns = dict.fromkeys(split["col"] for split in self.splits.values())
        return {j: {k: node["th"] for k, node in ordered if node["col"] == j} for j in columns}

    def predict(self, X: FloatArray) -> FloatArray:
        """What the linear model of each row's leaf says."""
        values = np.empty(len(X))
        for leaf, rows in self._reached(self.root, X, np.arange(len(X))):
            if rows.size:
                values[rows] = np.ravel(self.leaves[leaf]["models"].predict(X[rows]))
        return values

    def _reached(self, k: Any, X: FloatArray, rows: np.ndarray) -> Iterator[tuple[Any, np.ndarray]]:
        """The leaves below a node, each with those of these rows that end in it."""
        if k in self.leaves:
            yield k, rows
            return
        split = self.splits[k]
        left = X[rows, split["col"]] <= split["th"]
        for child, part in zip(split["children"], (rows[left], rows[~left]), strict=True):
            yield from self._reached(child, X, part)

    def _below(self, k: Any) -> Iterator[Any]:
        """The leaves below a node."""
        if k in self.leaves:
            yield k
            return
        for child in self.splits[k]["children"]:
            yield from self._below(child)

    def _bound(self, whole: dict[int, list[float | None]]) -> None:
        """Give each leaf its box: a split's threshold ends it on one side, and one below it is nearer."""
        pending = [(self.root, whole)]
        while pending:
            k, box = pending.pop()
            if k in self.leaves:
                self.leaves[k]["bounds"] = {j: [*pair] for j, pair in box.items()}
                continue
            j, th = self.splits[k]["col"], self.splits[k]["th"]
            left, right = self.splits[k]["children"]
            pending += [(left, {**box, j: [box[j][0], th]}), (right, {**box, j: [th, box[j][1]]})]

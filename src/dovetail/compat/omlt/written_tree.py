"""A linear tree as rows of a Pyomo block: one binary for each leaf, and its box and its line where it is 1.

Boxes are closed: at a threshold the rows allow the leaves of both sides, and the tree, which dovetail asks
itself, takes the left one.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pyomo.environ as pyo

from dovetail.compat.omlt.linear_tree_nodes import LinearTreeNodes
from dovetail.models.pyomo_written import not_tied, note_written


def write_tree(block: Any, nodes: LinearTreeNodes) -> bool:
    """Write the leaves into a block that the tree is tied to, if all have a box; whether they have."""
    boxes = {leaf: own["bounds"] for leaf, own in nodes.leaves.items()}
    if any(end is None for box in boxes.values() for pair in box.values() for end in pair):
        return False
    inputs = [*block.scaled_inputs.values()]
    block.leaf = pyo.Var([*boxes], domain=pyo.Binary, initialize=0)
    block.line = pyo.Var(initialize=0)
    block.one_leaf = pyo.Constraint(expr=sum(block.leaf.values()) == 1)
    block.leaf_rows = pyo.ConstraintList()
    for j, x in enumerate(inputs):
        block.leaf_rows.add(x >= sum(box[j][0] * block.leaf[k] for k, box in boxes.items()))
        block.leaf_rows.add(x <= sum(box[j][1] * block.leaf[k] for k, box in boxes.items()))
    block.line_of_leaf = pyo.Constraint(
        expr=block.line
        == sum(
            (sum(a * x for a, x in zip(own["slope"], inputs, strict=True)) + own["intercept"]) * block.leaf[k]
            for k, own in nodes.leaves.items()
        )
    )
    (output,) = block.scaled_outputs.values()
    block.output_assignment = pyo.Constraint(expr=output == block.line)
    made = "leaf", "line", "one_leaf", "leaf_rows", "line_of_leaf", "output_assignment"
    note_written([block.component(name) for name in made], WrittenTree(block, nodes))
    return True


class WrittenTree:
    """What `models/pyomo_written.py` asks of it. The block is not kept alive."""

    def __init__(self, block: Any, nodes: LinearTreeNodes) -> None:
        self._block, self._nodes = weakref.ref(block), nodes
        self.revealed: list[Any] = []

    def reveal(self, variables: list[Any]) -> None:
        """A `ModelError`: which leaf is taken is the tree's own affair."""
        raise not_tied(variables[0])

    def fill(self) -> None:
        """The leaf of the block's inputs, and its line."""
        block: Any = self._block()
        x = np.array([[variable.value for variable in block.scaled_inputs.values()]], dtype=np.float64)
        taken = self._nodes.leaf_of(x)
        for k, variable in block.leaf.items():
            variable.set_value(float(k == taken), skip_validation=True)
        block.line.set_value(float(self._nodes.predict(x)[0]), skip_validation=True)

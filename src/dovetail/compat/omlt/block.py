"""OMLT's block of Pyomo's, with the network tied to its variables instead of written out."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.core.base.block import BlockData, declare_custom_block

from dovetail.compat.omlt.by_index import indices
from dovetail.compat.omlt.definition import Definition
from dovetail.compat.omlt.formulations import Formulation
from dovetail.core.errors import OptionError
from dovetail.core.predictor import as_predictor
from dovetail.modelling.add_predictor_constr import add_predictor_constr


@declare_custom_block(name="OmltBlock")
class OmltBlockData(BlockData):  # type: ignore[misc]
    """`inputs` and `outputs` of a network, and what is between them and its own where it is scaled."""

    def build_formulation(self, formulation: Formulation) -> None:
        """Make the variables and tie the network to them."""
        definition = formulation.definition
        truth = as_predictor(definition.predictor)
        self.inputs_set = pyo.Set(initialize=[*indices(definition.input_shape)])
        self.outputs_set = pyo.Set(initialize=[*indices(_output_shape(definition, truth))])
        self.inputs = pyo.Var(self.inputs_set, initialize=0)
        self.outputs = pyo.Var(self.outputs_set, initialize=0)
        _add_own_variables(self, definition)
        _set_bounds(self, definition)
        add_predictor_constr(
            self,
            truth,
            [[*(self.scaled_inputs[k] for k in self.inputs_set), *_edges(self, definition.nodes)]],
            [[self.scaled_outputs[k] for k in self.outputs_set]],
            unique_naming_prefix=self.local_name,
        )


OmltBlock: Any = getattr(sys.modules[__name__], "OmltBlock")  # noqa: B009  made by the decorator


def _edges(block: Any, nodes: int) -> list[Any]:
    """The variables that say which nodes of a graph are joined, which the block's owner has put into it."""
    if nodes and block.component("A") is None:
        raise OptionError(
            f"the network reads a graph of {nodes} nodes; give the block a variable A, indexed by two nodes, "
            "before build_formulation: 1 where they are joined."
        )
    return [block.A[u, v] for u, v in np.ndindex(nodes, nodes)]


def _output_shape(definition: Definition, truth: Any) -> tuple[int, ...]:
    """As it is declared; else as many as the predictor gives, after a 0 where the inputs have it."""
    if definition.output_shape is not None:
        return tuple(definition.output_shape)
    shape = tuple(definition.input_shape)
    count = int(truth.predict(np.zeros((1, int(np.prod(shape))))).shape[1])
    return (1, count) if len(shape) > 1 and shape[0] == 1 else (count,)


def _add_own_variables(block: Any, definition: Definition) -> None:
    """The network's own inputs and outputs: the block's where nothing is scaled, else tied by rows."""
    scaling = definition.scaling_object
    if scaling is None:
        block.scaled_inputs = pyo.Reference(block.inputs)
        block.scaled_outputs = pyo.Reference(block.outputs)
        return
    block.scaled_inputs = pyo.Var(block.inputs_set, initialize=0)
    block.scaled_outputs = pyo.Var(block.outputs_set, initialize=0)
    seen = scaling.get_scaled_input_expressions(dict(block.inputs.items()))
    given = scaling.get_unscaled_output_expressions(dict(block.scaled_outputs.items()))
    block.scale_inputs = pyo.Constraint(
        block.inputs_set, rule=lambda b, *k: b.scaled_inputs[k] == seen[_key(k)]
    )
    block.scale_outputs = pyo.Constraint(block.outputs_set, rule=lambda b, *k: b.outputs[k] == given[_key(k)])


def _set_bounds(block: Any, definition: Definition) -> None:
    """Those of the network's own inputs, and those of the block's where the scaling can be undone."""
    bounds = definition.scaled_input_bounds or {}
    inputs = [*block.inputs_set]
    if bounds and not set(bounds) <= set(inputs):  # in a row, of inputs that have several axes
        bounds = dict(zip(inputs, bounds.values(), strict=True))
    for k, (low, high) in bounds.items():
        block.scaled_inputs[k].setlb(low)
        block.scaled_inputs[k].setub(high)
    undo = getattr(definition.scaling_object, "get_unscaled_input_expressions", None)
    for side, place in enumerate(("setlb", "setub")):
        limits = undo({k: pair[side] for k, pair in bounds.items()}) if undo and bounds else {}
        for k, limit in limits.items():
            getattr(block.inputs[k], place)(limit)


def _key(index: tuple[Any, ...]) -> Any:
    return index[0] if len(index) == 1 else index

"""OMLT's Pyomo block, with the network attached to its variables instead of written out."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.core.base.block import BlockData, declare_custom_block

from dovetail.core.errors import OptionError, UnsupportedError
from dovetail.modelling.add_predictor_constr import add_predictor_constr
from dovetail_peers.compat.omlt.definition import Bounds, Definition, Formulation
from dovetail_peers.compat.omlt.network import load_torch_geometric_sequential


@declare_custom_block(name="OmltBlock")
class OmltBlockData(BlockData):  # type: ignore[misc]
    """`inputs` and `outputs` of a network, with rows for the scaling if there is one."""

    def __init__(self, component: Any) -> None:
        super().__init__(component)
        self.__formulation: Any = None

    def build_formulation(self, formulation: Any) -> None:
        """Make the variables, and let the formulation fill the block."""
        if not isinstance(formulation, Formulation):
            raise UnsupportedError(
                f"{type(formulation).__name__} is no formulation of dovetail.compat.omlt; one of your own "
                "can add its variables and constraints to the model itself."
            )
        self.inputs_set = pyo.Set(initialize=formulation.input_indexes)
        self.outputs_set = pyo.Set(initialize=formulation.output_indexes)
        self.inputs = pyo.Var(self.inputs_set, initialize=0)
        self.outputs = pyo.Var(self.outputs_set, initialize=0)
        self.__formulation = formulation  # a weak reference to the block
        formulation.build(self)

    def tie(self, definition: Definition) -> None:
        """Connect the predictor with the block's variables: its own if there is no scaling."""
        set_up_scaled(self, definition.scaling_object, definition.scaled_input_bounds)
        scaled = definition.scaling_object is not None
        inputs, outputs = (self.scaled_inputs, self.scaled_outputs) if scaled else (self.inputs, self.outputs)
        seen = [*(inputs[k] for k in self.inputs_set), *_edges(self, definition.nodes)]
        given = [outputs[k] for k in self.outputs_set]
        add_predictor_constr(
            self, definition.predictor, [seen], [given], unique_naming_prefix=self.local_name
        )

    def __getattr__(self, name: str) -> Any:
        """A component of the block; an error with the fix for the rows that OMLT writes."""
        if name in ROWS:
            raise NotWrittenError(
                f"this block has no {name}: dovetail evaluates the network itself, and writes no variables "
                "and rows for its layers. Read block.inputs and block.outputs; for values between layers "
                "call layer.eval_single_layer(x) for each of the definition's layers in turn."
            )
        return super().__getattr__(name)


ROWS = frozenset({"layer", "layers", "input_assignment", "output_assignment"})
"""Components of OMLT's blocks that hold the rows of a network."""


class NotWrittenError(UnsupportedError, AttributeError):
    """`hasattr` and Pyomo itself, which tests for a name before it adds a component, treat it as missing."""


OmltBlock: Any = getattr(sys.modules[__name__], "OmltBlock")  # noqa: B009  made by the decorator


def set_up_scaled(block: Any, scaler: Any = None, scaled_input_bounds: Bounds | None = None) -> None:
    """The network's own inputs and outputs, connected with the block's by rows; the same variables without
    scaling."""
    _add_scaled(block, scaler)
    bounds = dict(scaled_input_bounds or {})
    inputs = [*block.inputs_set]
    if bounds and not set(bounds) <= set(inputs):  # in a row, of inputs that have several axes
        bounds = dict(zip(inputs, bounds.values(), strict=True))
    for k, (low, high) in bounds.items():
        block.scaled_inputs[k].setlb(low)
        block.scaled_inputs[k].setub(high)
    undo = dict if scaler is None else getattr(scaler, "get_unscaled_input_expressions", None)
    for side, place in enumerate(("setlb", "setub")):
        limits = undo({k: pair[side] for k, pair in bounds.items()}) if undo and bounds else {}
        for k, limit in limits.items():
            getattr(block.inputs[k], place)(limit)


def _add_scaled(block: Any, scaler: Any) -> None:
    block.scaled_inputs = pyo.Var(block.inputs_set, initialize=0)
    block.scaled_outputs = pyo.Var(block.outputs_set, initialize=0)
    seen, given = dict(block.inputs.items()), dict(block.scaled_outputs.items())
    if scaler is not None:
        seen, given = scaler.get_scaled_input_expressions(seen), scaler.get_unscaled_output_expressions(given)
    block.scale_inputs = pyo.Constraint(
        block.inputs_set, rule=lambda b, *k: b.scaled_inputs[k] == seen[number_or_tuple(k)]
    )
    block.scale_outputs = pyo.Constraint(
        block.outputs_set, rule=lambda b, *k: b.outputs[k] == given[number_or_tuple(k)]
    )


def gnn_with_fixed_graph(block: Any, nn: Any, N: int, A: Any, *args: Any, **options: Any) -> Any:
    """Build a network of torch_geometric over a known graph; `A` of the block is fixed to it."""
    net = load_torch_geometric_sequential(nn, N, A, *args, **options)
    _add_edges(block, N)
    for (u, v), edge in block.A.items():
        edge.fix(1 if u == v else int(bool(A[u][v])))
    block.build_formulation(Formulation(net))
    return block


def gnn_with_non_fixed_graph(block: Any, nn: Any, N: int, *args: Any, **options: Any) -> Any:
    """The network over a graph that is a decision: `A` of the block, symmetric."""
    net = load_torch_geometric_sequential(nn, N, None, *args, **options)
    _add_edges(block, N)
    for u in range(N):
        block.A[u, u].fix(1)
    pairs = [(u, v) for u in range(N) for v in range(u)]
    block.same_both_ways = pyo.Constraint(pairs, rule=lambda b, u, v: b.A[u, v] == b.A[v, u])
    block.build_formulation(Formulation(net))
    return block


def _add_edges(block: Any, N: int) -> None:
    block.A = pyo.Var(range(N), range(N), domain=pyo.Binary, initialize=0)


def _edges(block: Any, nodes: int) -> list[Any]:
    """The variables that state which nodes of a graph are joined; the block's owner has added them."""
    if nodes and block.component("A") is None:
        raise OptionError(
            f"the network reads a graph of {nodes} nodes; give the block a variable A, indexed by two nodes, "
            "before build_formulation: 1 where they are joined."
        )
    return [block.A[u, v] for u, v in np.ndindex(nodes, nodes)]


def number_or_tuple(index: tuple[Any, ...]) -> Any:
    """An index with one axis as a scalar."""
    return index[0] if len(index) == 1 else index

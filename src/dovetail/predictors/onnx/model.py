"""ONNX models as predictors, by an interpreter of our own.

A graph is turned once into a list of functions of torch tensors inside an `nn.Module`; from there on an
ONNX model is a torch module like any other: `predict` computes in the file's own precision, gradients
run through a float64 copy. No ONNX runtime is needed to solve; the tests use one as an oracle.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from dovetail.core.arrays import FloatArray
from dovetail.core.description import Description
from dovetail.core.errors import PredictorError, UnsupportedError
from dovetail.core.file_limits import FileLimits, Meter
from dovetail.core.layers import Activation, Dense, Layer
from dovetail.predictors.onnx.file import Graph, metered, read_graph, readable
from dovetail.predictors.onnx.memory import room
from dovetail.predictors.onnx.node import LARGEST, Node, Run
from dovetail.predictors.onnx.operators import SHAPES_ONLY, compiled, has_slope, operator_of
from dovetail.predictors.torch.layers import changed
from dovetail.predictors.torch.module import TorchPredictor

TRIAL = 3
"""Rows of the batch a model is tried on when it is read."""
RESHAPING = ("Identity", "Dropout", "Flatten", "Reshape", "Squeeze", "Unsqueeze")
"""Operators that keep every number of a row, in its order."""
ACTIVATIONS = {
    "Relu": "relu",
    "Sigmoid": "sigmoid",
    "Tanh": "tanh",
    "Softplus": "softplus",
    "Softmax": "softmax",
}
ARITHMETIC = ("Add", "Sub", "Mul", "Div")
LINEAR = ("Gemm", "MatMul", "Conv", "ConvTranspose")
PICKING = ("Gather", "Slice", "Transpose")
"""Operators that hand some of their numbers on."""
ABSENT, GRAIN, UNREAD = 0, 1, -1
"""Places among the values of a run: an input left out, the precision in use, outputs nobody reads."""


class OnnxPredictor(TorchPredictor):
    """An ONNX file, or an `onnx.ModelProto`: one float input (samples, ...), one output (samples, ...).

    A row of features is the input's further axes laid out flat, and a row of outputs likewise. `output`
    chooses among several outputs by name. A model exported for a single sample is taken sample by sample.
    `limits` raises what reading and trying it may take.
    """

    def __init__(self, model: Any, output: str | None = None, *, limits: FileLimits | None = None) -> None:
        meter = metered(model, limits)
        graph = read_graph(model, output, meter)
        with readable(graph.name):
            module = OnnxModule(graph, meter)
        super().__init__(module)
        self.name = graph.name
        self._graph = graph
        self._onnx_module = module

    def describe(self, X: FloatArray) -> Description:
        """As for any module; and the graph itself shows steps, and what it ends in."""
        seen = super().describe(X)
        smooth = seen.smooth and not _steps_taken(self._graph)
        return replace(seen, smooth=smooth, ends_in_sigmoid=_ends_in_sigmoid(self._graph))

    def layers(self) -> tuple[Layer, ...]:
        """The graph written out, if it is a plain chain of dense layers and common activations."""
        return tuple(_merged(self._operations()))

    def _operations(self) -> tuple[Layer, ...]:
        reason = changed(self._onnx_module)
        if reason:
            raise UnsupportedError(f"{self.name} cannot be written out: {reason}.")
        return tuple(_layers(self._graph, self._onnx_module))


class OnnxModule(nn.Module):
    """A graph as a torch module from (n, features) to (n, outputs).

    Float constants are buffers, so that copies and conversions take them along. Two more buffers show
    the precision in use: that of the input, and the narrowest (`grain`), which tells the file as it is
    from a copy in another precision. In such a copy every cast to a float type goes to the copy's.
    """

    precision: Tensor
    grain: Tensor

    def __init__(self, graph: Graph, meter: Meter) -> None:
        super().__init__()
        self.register_buffer("precision", torch.zeros((), dtype=graph.dtype))
        self.register_buffer("grain", torch.zeros((), dtype=graph.grain))
        self._name = graph.name
        self._own_grain = graph.grain
        runs = {node: compiled(node) for node in graph.nodes}  # what is not supported, before anything runs
        _require_slope(graph)
        with room(meter):
            constants = self._folded(graph, runs)
        left = [node for node in graph.nodes if not set(node.outputs) - {""} <= constants.keys()]
        self._slots = _numbered(graph, left)
        self._input, self._output = self._slots[graph.input], self._slots[graph.output]
        self._steps = _scheduled(left, runs, self._slots, self._output)
        self._fixed: list[Tensor | None] = [None] * (len(self._slots) + 3)
        self._floats: list[tuple[int, str]] = []
        self._masks: list[int] = []
        for name in constants.keys() & self._slots.keys():
            self._keep(name, constants[name])
        self._shape = _row_shape(graph, constants)
        self._limits = meter.limits
        self._most_rows = 0
        self._alone = False
        self._alone = self._goes_alone(graph.sizes[0], meter)
        self._most_rows = TRIAL

    def forward(self, x: Tensor) -> Tensor:
        """All rows at once; or each on its own, for a graph that was made for one."""
        if x.ndim != 2 or x.shape[1] != math.prod(self._shape):
            laid_out = "" if len(self._shape) == 1 else f" ({' x '.join(map(str, self._shape))})"
            raise PredictorError(
                f"{self._name} takes {math.prod(self._shape)} features{laid_out}, not {tuple(x.shape)[1:]}."
            )
        if len(x) > self._most_rows and type(x) is Tensor:
            with room(self._meter(len(x))):
                y = self._batch(x)
            self._most_rows = len(x)
            return y
        return self._batch(x)

    def _batch(self, x: Tensor) -> Tensor:
        if self._alone:
            rows: Tensor = torch.vmap(self._one)(x)
            return rows
        return self._rows(x)

    def _meter(self, rows: int) -> Meter:
        """For a batch larger than any before: a graph can make more of many rows than of few, each by each.

        What it may compute grows with the rows, which are the caller's choice.
        """
        assert self._limits.elements is not None
        allowed = self._limits.elements * math.ceil(rows / TRIAL)
        limits = replace(self._limits, elements=allowed, seconds=math.inf)
        return Meter(f"{self._name} with {rows} samples", limits, "load_predictor", PredictorError)

    def shapes(self) -> tuple[dict[str, tuple[int, ...]], int]:
        """The shape of everything that is computed, by name, and the number of rows it was seen with."""
        rows = 1 if self._alone else TRIAL
        values = self._values(self.precision.new_zeros(rows, math.prod(self._shape)), forgets=False)
        seen = {name: values[slot] for name, slot in self._slots.items()}
        return {name: tuple(value.shape) for name, value in seen.items() if value is not None}, rows

    def constant(self, name: str) -> FloatArray | None:
        """A float constant by name, or None for anything else."""
        buffer = self._buffers.get(f"constant{self._slots.get(name, 0)}")
        return None if buffer is None else buffer.to(dtype=torch.float64, device="cpu").numpy().copy()

    def _one(self, row: Tensor) -> Tensor:
        return self._rows(row.unsqueeze(0)).squeeze(0)

    def _rows(self, x: Tensor) -> Tensor:
        y = self._values(x)[self._output]
        if y is not None and y.ndim == 0 and len(x) == 1:  # a Squeeze took the samples' axis along
            y = y.reshape(1)
        if y is None or y.ndim == 0 or len(y) != len(x):
            raise PredictorError(
                f"{self._name} turns {len(x)} samples into an output of shape "
                f"{None if y is None else tuple(y.shape)}; its first axis must be the samples."
            )
        return y.reshape(len(x), math.prod(y.shape[1:]))

    def _values(self, x: Tensor, forgets: bool = True) -> list[Tensor | None]:
        """Every step in turn; what no later step reads is dropped on the way."""
        values, buffers = self._fixed.copy(), self._buffers
        values[GRAIN] = self.grain
        for slot, name in self._floats:
            values[slot] = buffers[name]
        for slot in self._masks:
            values[slot] = self._as_in_use(values[slot])
        values[self._input] = x.reshape(len(x), *self._shape)
        step: _Step | None = None
        try:
            for step in self._steps:
                result = step.run(*[values[slot] for slot in step.inputs])
                if step.single:
                    values[step.outputs[0]] = result
                else:
                    for slot, value in zip(step.outputs, result, strict=False):
                        values[slot] = value
                if forgets:
                    for slot in step.done:
                        values[slot] = None
        except (PredictorError, UnsupportedError):
            raise
        except Exception as reason:
            raise PredictorError(
                f"{self._name}: {step and step.label} fails: {type(reason).__name__}: {reason}"
            ) from reason
        return values

    def _as_in_use(self, mask: Tensor | None) -> Tensor | None:
        """A constant that is no buffer, where the buffers are and in their precision."""
        if mask is None:
            return None
        as_written = self.grain.dtype == self._own_grain
        return mask.to(device=self.grain.device, dtype=mask.dtype if as_written else self.grain.dtype)

    def _folded(self, graph: Graph, runs: Mapping[Node, Run]) -> dict[str, Tensor]:
        """Everything that does not depend on the input, computed once."""
        known = dict(graph.constants)
        for node in graph.nodes:
            if any(name and name not in known for name in node.inputs):
                continue
            arguments = [known.get(name) for name in node.inputs]
            try:
                result = runs[node](*([self.grain] if operator_of(node).grain else []), *arguments)
            except (PredictorError, UnsupportedError) as reason:
                raise type(reason)(f"{self._name}: {node}: {reason}") from reason
            except Exception as reason:
                raise PredictorError(
                    f"{self._name}: {node} fails: {type(reason).__name__}: {reason}"
                ) from reason
            several = result if isinstance(result, tuple) else (result,)
            known.update({name: value for name, value in zip(node.outputs, several, strict=False) if name})
        return known

    def _keep(self, name: str, value: Tensor) -> None:
        """Store a constant: floats as a buffer, the rest (and masks of minus infinity) as it is."""
        slot = self._slots[name]
        if not value.is_floating_point():
            self._fixed[slot] = value
        elif bool(torch.isfinite(value).all()):
            self.register_buffer(f"constant{slot}", value.contiguous())
            self._floats.append((slot, f"constant{slot}"))
        elif bool((torch.isinf(value) | (value == 0)).all()):
            self._fixed[slot] = value
            self._masks.append(slot)
        else:
            raise PredictorError(f"{self._name}: {name!r} holds NaN or infinity; train or load it again.")

    def _goes_alone(self, declared: int | None, meter: Meter) -> bool:
        """Whether rows must be taken one by one, found out on a few: many a graph is made for one sample.

        Rows that influence each other in a graph made for many are left for the probe to refuse.
        """
        rng = torch.Generator().manual_seed(0)
        x = torch.rand(TRIAL, math.prod(self._shape), generator=rng, dtype=torch.float64) * 2.0 - 1.0
        x = x.to(self.precision.dtype)
        together = _tried(lambda: [self._rows(x[: TRIAL - 1]), self._rows(x)][1], meter)
        apart = _tried(lambda: torch.cat([self._rows(row.unsqueeze(0)) for row in x]), meter)
        if isinstance(together, Tensor) and (declared != 1 or isinstance(apart, Exception)):
            return False
        if isinstance(together, Tensor) and isinstance(apart, Tensor) and _close(together, apart):
            return False
        vectorised = (
            apart if isinstance(apart, Exception) else _tried(lambda: torch.vmap(self._one)(x), meter)
        )
        if isinstance(vectorised, Exception):
            raise self._unusable(declared, together if isinstance(together, Exception) else vectorised)
        return True

    def _unusable(self, declared: int | None, reason: Exception) -> PredictorError:
        fixed = "" if declared is None else f" It was exported for batches of {declared}."
        return PredictorError(
            f"{self._name} cannot take a batch of samples: {reason}{fixed} Export it with an open first "
            'axis: torch.onnx.export(..., dynamic_shapes=({0: torch.export.Dim("n")},)).'
        )


class _Step(NamedTuple):
    """A node in the run: what it does, and which places it reads, fills and frees."""

    run: Run
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    single: bool
    done: tuple[int, ...]
    label: str


def _numbered(graph: Graph, nodes: Iterable[Node]) -> dict[str, int]:
    """A place for every value that is met while running."""
    names = [graph.input, graph.output]
    for node in nodes:
        names += [name for name in node.inputs + node.outputs if name]
    return {name: slot for slot, name in enumerate(dict.fromkeys(names), start=GRAIN + 1)}


def _scheduled(
    nodes: Iterable[Node], runs: Mapping[Node, Run], slots: Mapping[str, int], output: int
) -> list[_Step]:
    steps: list[_Step] = []
    read_later = {output}
    for node in reversed(list(nodes)):
        operator = operator_of(node)
        inputs = tuple(slots[name] if name else ABSENT for name in node.inputs)
        outputs = tuple(slots[name] if name else UNREAD for name in node.outputs)
        done = tuple(set(inputs) - read_later - {ABSENT})
        read_later |= set(inputs)
        arguments = (GRAIN, *inputs) if operator.grain else inputs
        steps.append(_Step(runs[node], arguments, outputs, operator.outputs == 1, done, str(node)))
    return steps[::-1]


def _tried(action: Callable[[], Tensor], meter: Meter) -> Tensor | Exception:
    try:
        with torch.no_grad(), room(meter):
            return action()
    except UnsupportedError:
        raise
    except Exception as reason:
        if meter.met:
            raise
        return reason


def _close(a: Tensor, b: Tensor) -> bool:
    tolerance = 1e-9 if a.dtype == torch.float64 else 1e-4
    return a.shape == b.shape and torch.allclose(a, b, tolerance, tolerance, equal_nan=True)


# What the graph shows without being run


def _varying(graph: Graph) -> set[str]:
    """The names of all values that depend on the numbers in the input (not only on how many rows it has)."""
    varying = {graph.input}
    for node in graph.nodes:
        if node.operator not in SHAPES_ONLY and varying & set(node.inputs):
            varying |= set(node.outputs) - {""}
    return varying


def _steps_taken(graph: Graph) -> list[Node]:
    """Nodes that turn data into something that moves in steps."""
    varying = _varying(graph)
    return [
        node
        for node in graph.nodes
        if node.operator not in SHAPES_ONLY and varying & set(node.inputs) and not has_slope(node)
    ]


def _require_slope(graph: Graph) -> None:
    """Refuse a network whose output has no gradient anywhere: an index of a class, say."""
    if graph.output not in _varying(graph):
        raise PredictorError(f"{graph.name}: output {graph.output!r} does not depend on the input.")
    sloped = {graph.input}
    for node in graph.nodes:
        if sloped & set(node.inputs) and has_slope(node):
            sloped |= set(node.outputs) - {""}
    if graph.output not in sloped:
        raise UnsupportedError(
            f"{graph.name}: output {graph.output!r} has no gradient: {_steps_taken(graph)[-1]} turns numbers "
            "into steps. Export the scores it is taken from; add_predictor(..., "
            'output_type="classification") finds the largest itself.'
        )


def _ends_in_sigmoid(graph: Graph) -> bool | None:
    """True or False where the last operation shows it, None where it does not."""
    made = {name: node for node in graph.nodes for name in node.outputs if name}
    varying = _varying(graph)
    name, shifted = graph.output, False
    while name in made:
        node = made[name]
        data = [value for value in node.inputs if value in varying]
        if node.operator == "Sigmoid":
            return None if shifted else True
        if node.operator in LINEAR and len(data) == 1:
            return False
        shifted = shifted or node.operator in ("Add", "Sub")
        if node.operator not in (*RESHAPING, *PICKING, "Add", "Sub") or len(data) != 1:
            return None
        (name,) = data
    return None


def _row_shape(graph: Graph, constants: Mapping[str, Tensor]) -> tuple[int, ...]:
    """The axes of one sample."""
    first, *rest = graph.sizes
    if len(rest) == 1 and rest[0] is None:
        rest = [_width(graph, constants)]
    sizes = tuple(size for size in rest if size is not None)
    if len(sizes) < len(rest):
        order = "" if first is None else " The samples must be the first axis."
        shown = ", ".join("?" if size is None else str(size) for size in graph.sizes)
        raise PredictorError(
            f"{graph.name}: input {graph.input!r} has the shape ({shown}); export the network with only the "
            f"first axis open.{order}"
        )
    if not 0 < math.prod(sizes) <= LARGEST // 16:
        raise PredictorError(
            f"{graph.name}: input {graph.input!r} has {math.prod(sizes)} features per sample."
        )
    return sizes


def _width(graph: Graph, constants: Mapping[str, Tensor]) -> int | None:
    """How many features there are, from the weights they meet first."""
    for node in graph.nodes:
        if node.operator in ("Gemm", "MatMul") and node.inputs[0] == graph.input:
            weight = constants.get(node.inputs[1])
            if weight is not None and weight.ndim == 2:
                return int(weight.shape[1 if node.operator == "Gemm" and node.integer("transB", 0) else 0])
    return None


# Layers, for the methods that write a network out


def _layers(graph: Graph, module: OnnxModule) -> Iterator[Layer]:
    shapes, rows = module.shapes()
    for node, data in _chain(graph):
        before, after = shapes[data], shapes[node.outputs[0]]
        if node.operator in RESHAPING and before[0] == after[0] == rows:
            continue
        if node.operator in ACTIVATIONS and (node.operator != "Softmax" or _is_on_rows(node, before)):
            yield Activation(ACTIVATIONS[node.operator])
        elif node.operator in ("Gemm", "MatMul") and node.inputs[0] == data and len(before) == 2:
            yield _dense(node, module)
        elif node.operator in ARITHMETIC and before == after:
            yield _scaling(node, data, before, module)
        else:
            raise _not_a_layer(node)


def _chain(graph: Graph) -> list[tuple[Node, str]]:
    """The nodes from input to output, each with the one value it works on."""
    made = {name: node for node in graph.nodes for name in node.outputs if name}
    varying = _varying(graph)
    name, chain = graph.output, []
    while name != graph.input:
        node = made[name]
        data = [value for value in node.inputs if value in varying]
        if len(data) != 1:
            raise _not_a_layer(node)
        (name,) = data
        chain.append((node, name))
    return chain[::-1]


def _is_on_rows(node: Node, shape: tuple[int, ...]) -> bool:
    return len(shape) == 2 and node.integer("axis", -1) in (1, -1)


def _dense(node: Node, module: OnnxModule) -> Dense:
    weight = module.constant(node.inputs[1])
    if weight is None or weight.ndim > 2 or (node.operator == "Gemm" and node.integer("transA", 0)):
        raise _not_a_layer(node)
    if node.operator == "MatMul":
        weight = np.atleast_2d(weight.T)
        return Dense(weight, np.zeros(len(weight)))
    weight = node.number("alpha", 1.0) * (weight if node.integer("transB", 0) else weight.T)
    bias: FloatArray | None = np.zeros(1)
    if len(node.inputs) > 2 and node.inputs[2]:
        bias = module.constant(node.inputs[2])
    return Dense(weight, node.number("beta", 1.0) * _spread(bias, (len(weight),), node))


def _scaling(node: Node, data: str, shape: tuple[int, ...], module: OnnxModule) -> Dense:
    """Arithmetic with a constant: a scaler before a network, or the bias after a MatMul."""
    comes_first = node.inputs[0] == data
    constant = _spread(module.constant(node.inputs[1 if comes_first else 0]), shape[1:], node)
    ones, zeros = np.ones(len(constant)), np.zeros(len(constant))
    if node.operator == "Add":
        return Dense(np.diag(ones), constant)
    if node.operator == "Sub":
        return Dense(np.diag(ones), -constant) if comes_first else Dense(np.diag(-ones), constant)
    if node.operator == "Div" and not comes_first:
        raise _not_a_layer(node)
    return Dense(np.diag(constant if node.operator == "Mul" else 1.0 / constant), zeros)


def _spread(constant: FloatArray | None, shape: tuple[int, ...], node: Node) -> FloatArray:
    """A constant, the same for all rows, as one number per value of a row."""
    try:
        if constant is not None:
            return np.broadcast_to(constant, (1, *shape)).reshape(-1).copy()
    except ValueError:
        pass
    raise _not_a_layer(node)


def _merged(layers: Iterable[Layer]) -> Iterator[Layer]:
    """The same layers, with scalings and shifts taken into the dense layer beside them."""
    last: Layer | None = None
    for layer in layers:
        if isinstance(last, Dense) and isinstance(layer, Dense) and (_is_scaling(last) or _is_scaling(layer)):
            last = Dense(layer.weight @ last.weight, layer.weight @ last.bias + layer.bias)
            continue
        if last is not None:
            yield last
        last = layer
    if last is not None:
        yield last


def _is_scaling(layer: Dense) -> bool:
    rows, columns = layer.weight.shape
    off_diagonal = np.count_nonzero(layer.weight) - np.count_nonzero(np.diagonal(layer.weight))
    return bool(rows == columns and off_diagonal == 0)


def _not_a_layer(node: Node) -> UnsupportedError:
    return UnsupportedError(
        f"{node} cannot be written out as a layer; only a chain of Gemm, MatMul, Add, Relu, Sigmoid, Tanh, "
        'Softplus and Softmax can. method="auto" takes any network.'
    )

"""Running a graph: an `nn.Module` that evaluates the nodes that remain after constants are folded."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import PredictorError, UnsupportedError
from dovetail.core.files import Meter
from dovetail.predictors.onnx.memory import LARGEST, room
from dovetail.predictors.onnx.node import Kernel, OnnxNode
from dovetail.predictors.onnx.operators.shape import SHAPES_ONLY
from dovetail.predictors.onnx.operators.table import compiled, is_differentiable, operator_of

RESHAPING = ("Identity", "Dropout", "Flatten", "Reshape", "Squeeze", "Unsqueeze")
"""Operators that keep every number of a row, in its order."""
LINEAR = ("Gemm", "MatMul", "Conv", "ConvTranspose")
"""Operators after which an output is a logit and not a probability."""
SHIFT_OPERATORS = ("Add", "Sub")
"""Operators that may add a bias after those, or move a sigmoid out of [0, 1]."""
MOST_FEATURES = LARGEST // 16
"""Largest number of features of a sample, so that a small batch stays below the largest tensor."""


def piecewise_constant_nodes(graph: OnnxGraph) -> list[OnnxNode]:
    """Nodes whose results are piecewise constant in the data."""
    varying = graph.varying()
    return [
        node
        for node in graph.nodes
        if node.operator not in SHAPES_ONLY and varying & set(node.inputs) and not is_differentiable(node)
    ]


def require_gradient(graph: OnnxGraph) -> None:
    """Refuse a network whose output has no gradient anywhere, such as the index of a class."""
    if graph.output not in graph.varying():
        raise PredictorError(f"{graph.name}: output {graph.output!r} does not depend on the input.")
    reached = {graph.input}
    for node in graph.nodes:
        if reached & set(node.inputs) and is_differentiable(node):
            reached |= set(node.outputs) - {""}
    if graph.output not in reached:
        culprit = piecewise_constant_nodes(graph)[-1]
        raise UnsupportedError(
            f"{graph.name}: output {graph.output!r} has no gradient: {culprit} turns numbers "
            "into steps. Export the scores it is taken from; add_predictor(..., "
            'output_type="classification") finds the largest itself.'
        )


def ends_in_sigmoid(graph: OnnxGraph) -> bool | None:
    """Whether the last operation is a sigmoid; None if it is not clear."""
    makers = graph.makers()
    varying = graph.varying()
    name, shifted = graph.output, False
    while name in makers:
        node = makers[name]
        data = [value for value in node.inputs if value in varying]
        if node.operator == "Sigmoid":
            return None if shifted else True
        if node.operator in LINEAR and len(data) == 1:
            return False
        shifted = shifted or node.operator in SHIFT_OPERATORS
        if (
            node.operator not in (*RESHAPING, "Gather", "Slice", "Transpose", *SHIFT_OPERATORS)
            or len(data) != 1
        ):
            return None
        (name,) = data
    return None


def row_shape(graph: OnnxGraph, constants: Mapping[str, Tensor]) -> tuple[int, ...]:
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
    if not 0 < math.prod(sizes) <= MOST_FEATURES:
        raise PredictorError(
            f"{graph.name}: input {graph.input!r} has {math.prod(sizes)} features per sample."
        )
    return sizes


def _width(graph: OnnxGraph, constants: Mapping[str, Tensor]) -> int | None:
    """The number of features, from the first weights."""
    for node in graph.nodes:
        if node.operator in ("Gemm", "MatMul") and node.inputs[0] == graph.input:
            weight = constants.get(node.inputs[1])
            if weight is not None and weight.ndim == 2:
                return int(weight.shape[1 if node.operator == "Gemm" and node.integer("transB", 0) else 0])
    return None


@dataclass(frozen=True, eq=False)
class OnnxGraph:
    """A network: one input, one output, and the nodes between them in order."""

    name: str
    input: str
    dtype: torch.dtype
    sizes: tuple[int | None, ...]
    """The input's shape; None for open axes."""
    output: str
    nodes: tuple[OnnxNode, ...]
    constants: dict[str, Tensor]
    narrowest_dtype: torch.dtype
    """The narrowest float type in it."""

    def makers(self) -> dict[str, OnnxNode]:
        """The node that makes each value, by name."""
        return {name: node for node in self.nodes for name in node.outputs if name}

    def varying(self) -> set[str]:
        """Names of the values that depend on the data in the input, not only on its number of rows."""
        varying = {self.input}
        for node in self.nodes:
            if node.operator not in SHAPES_ONLY and varying & set(node.inputs):
                varying |= set(node.outputs) - {""}
        return varying


TRIAL = 3
"""Number of rows of the batch on which a model is tried; two could be a size stated in the file."""

Batch = Callable[[Tensor], Tensor]


class OnnxModule(nn.Module):
    """A graph as a torch module from (n, features) to (n, outputs).

    Float constants are buffers, so that copies and conversions take them along. Two more buffers show the
    precision in use: that of the input, and the narrowest, which distinguishes the original file from a copy
    in another precision. In a converted copy every cast to a float type goes to the copy's type.
    """

    precision: Tensor
    narrowest: Tensor

    def __init__(self, graph: OnnxGraph, meter: Meter) -> None:
        super().__init__()
        self.register_buffer("precision", torch.zeros((), dtype=graph.dtype))
        self.register_buffer("narrowest", torch.zeros((), dtype=graph.narrowest_dtype))
        self._name, self._input, self._output = graph.name, graph.input, graph.output
        self._own_narrowest = graph.narrowest_dtype
        kernels = {node: compiled(node) for node in graph.nodes}  # these are refused before anything runs
        require_gradient(graph)
        with room(meter):
            constants = folded_constants(graph, kernels)
        self._steps = scheduled(graph, kernels, constants)
        self._fixed: dict[str, Tensor] = {}
        self._floats: dict[str, str] = {}
        """Names of the buffers of float constants."""
        self._masks: list[str] = []
        for name in {
            graph.output,
            *(name for step in self._steps for name in step.inputs),
        } & constants.keys():
            self._keep(name, constants[name])
        self._shape = row_shape(graph, constants)
        self._limits = meter.limits
        x = trial_batch(math.prod(self._shape), graph.dtype)
        self._takes_one = takes_one(self._rows, x, graph.sizes[0], meter)
        self._most_rows = TRIAL

    def forward(self, x: Tensor) -> Tensor:
        """All rows at once; or one by one, for a graph made for one row."""
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

    def shapes(self) -> tuple[dict[str, tuple[int, ...]], int]:
        """The shape of every computed value, by name, and the number of rows of that run."""
        rows = 1 if self._takes_one else TRIAL
        values = self._values(self.precision.new_zeros(rows, math.prod(self._shape)), frees=False)
        return {name: tuple(value.shape) for name, value in values.items() if value is not None}, rows

    def constant(self, name: str) -> FloatArray | None:
        """A float constant by name; None for anything else."""
        buffer = self._buffers.get(self._floats.get(name, ""))
        return None if buffer is None else buffer.to(dtype=torch.float64, device="cpu").numpy().copy()

    def _batch(self, x: Tensor) -> Tensor:
        return one_by_one(self._rows, x) if self._takes_one else self._rows(x)

    def _meter(self, rows: int) -> Meter:
        """A meter for a batch larger than any before, because a graph may compute quadratically many values.
        The limit grows with the number of rows."""
        assert self._limits.elements is not None
        allowed = self._limits.elements * math.ceil(rows / TRIAL)
        limits = replace(self._limits, elements=allowed, seconds=math.inf)
        return Meter(f"{self._name} with {rows} samples", limits, "load_predictor", PredictorError)

    def _rows(self, x: Tensor) -> Tensor:
        y = self._values(x)[self._output]
        if y is not None and len(x) == 1:  # a Squeeze may have taken the samples' axis along
            y = y.reshape(1, -1)
        if y is None or y.ndim == 0 or len(y) != len(x):
            raise PredictorError(
                f"{self._name} turns {len(x)} samples into an output of shape "
                f"{None if y is None else tuple(y.shape)}; its first axis must be the samples."
            )
        return y.reshape(len(x), math.prod(y.shape[1:]))

    def _values(self, x: Tensor, frees: bool = True) -> dict[str, Tensor | None]:
        """Evaluate every step; values that no later step reads are dropped."""
        buffers = self._buffers
        values: dict[str, Tensor | None] = {"": None, **self._fixed}
        values |= {name: buffers[buffer] for name, buffer in self._floats.items()}
        values |= {name: self._converted_constant(self._fixed[name]) for name in self._masks}
        values[self._input] = x.reshape(len(x), *self._shape)
        step: PlannedStep | None = None
        try:
            for step in self._steps:
                arguments = [values[name] for name in step.inputs]
                result = step.kernel(*([self.narrowest] if step.needs_like else []), *arguments)
                given = zip(step.outputs, (result,) if step.single else result, strict=False)
                values.update({name: value for name, value in given if name})
                for name in step.freed if frees else ():
                    values[name] = None
        except (PredictorError, UnsupportedError):
            raise
        except Exception as reason:
            raise PredictorError(
                f"{self._name}: {step and step.label} fails: {type(reason).__name__}: {reason}"
            ) from reason
        return values

    def _converted_constant(self, mask: Tensor) -> Tensor:
        """A constant that is no buffer, on the device and in the precision of the buffers."""
        as_written = self.narrowest.dtype == self._own_narrowest
        return mask.to(device=self.narrowest.device, dtype=mask.dtype if as_written else self.narrowest.dtype)

    def _keep(self, name: str, value: Tensor) -> None:
        """Store a constant: floats as a buffer, others (and masks of minus infinity) unchanged."""
        if not value.is_floating_point():
            self._fixed[name] = value
        elif bool(torch.isfinite(value).all()):
            self._floats[name] = f"constant{len(self._floats)}"
            self.register_buffer(self._floats[name], value.contiguous())
        elif bool((torch.isinf(value) | (value == 0)).all()):
            self._fixed[name] = value
            self._masks.append(name)
        else:
            raise PredictorError(f"{self._name}: {name!r} holds NaN or infinity; train or load it again.")


def one_by_one(run: Batch, x: Tensor) -> Tensor:
    """Every row as a batch of its own, vectorised."""
    rows: Tensor = torch.vmap(lambda row: run(row.unsqueeze(0)).squeeze(0))(x)
    return rows


def trial_batch(features: int, dtype: torch.dtype) -> Tensor:
    """A few fixed rows in [-1, 1]."""
    rng = torch.Generator().manual_seed(0)
    x = torch.rand(TRIAL, features, generator=rng, dtype=torch.float64) * 2.0 - 1.0
    return x.to(dtype)


def takes_one(run: Batch, x: Tensor, declared: int | None, meter: Meter) -> bool:
    """Whether rows must be evaluated one by one, tested on the few rows of `x`. A graph for many rows whose
    rows influence each other is refused later."""
    together = _try_action(lambda: [run(x[: TRIAL - 1]), run(x)][1], meter)
    apart = _try_action(lambda: torch.cat([run(row.unsqueeze(0)) for row in x]), meter)
    if isinstance(together, Tensor) and (declared != 1 or isinstance(apart, Exception)):
        return False
    if isinstance(together, Tensor) and isinstance(apart, Tensor) and _close(together, apart):
        return False
    vectorised = apart if isinstance(apart, Exception) else _try_action(lambda: one_by_one(run, x), meter)
    if isinstance(vectorised, Exception):
        reason = together if isinstance(together, Exception) else vectorised
        raise _unusable(meter.name, declared, reason)
    return True


def _unusable(name: str, declared: int | None, reason: Exception) -> PredictorError:
    fixed = "" if declared is None else f" It was exported for batches of {declared}."
    return PredictorError(
        f"{name} cannot take a batch of samples: {reason}{fixed} Export it with an open first "
        'axis: torch.onnx.export(..., dynamic_shapes=({0: torch.export.Dim("n")},)).'
    )


def _try_action(action: Callable[[], Tensor], meter: Meter) -> Tensor | Exception:
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
    """Equal up to the order of sums: a batch of three is added up differently from one row."""
    tolerance = 1e-9 if a.dtype == torch.float64 else 1e-4
    return a.shape == b.shape and torch.allclose(a, b, tolerance, tolerance, equal_nan=True)


class PlannedStep(NamedTuple):
    """A node with its function, the values that it reads and makes, and the values to drop after it."""

    kernel: Kernel
    inputs: tuple[str, ...]
    """"" for an input that is left out."""
    outputs: tuple[str, ...]
    """"" for an output that nobody reads."""
    single: bool
    needs_like: bool
    freed: tuple[str, ...]
    label: str


def folded_constants(graph: OnnxGraph, kernels: Mapping[OnnxNode, Kernel]) -> dict[str, Tensor]:
    """The values that do not depend on the input, computed once."""
    known = dict(graph.constants)
    like = torch.zeros((), dtype=graph.narrowest_dtype)
    for node in graph.nodes:
        if any(name and name not in known for name in node.inputs):
            continue
        arguments = [known.get(name) for name in node.inputs]
        try:
            result = kernels[node](*([like] if operator_of(node).needs_like else []), *arguments)
        except (PredictorError, UnsupportedError) as reason:
            raise type(reason)(f"{graph.name}: {node}: {reason}") from reason
        except Exception as reason:
            raise PredictorError(f"{graph.name}: {node} fails: {type(reason).__name__}: {reason}") from reason
        several = result if isinstance(result, tuple) else (result,)
        known.update({name: value for name, value in zip(node.outputs, several, strict=False) if name})
    return known


def scheduled(
    graph: OnnxGraph, kernels: Mapping[OnnxNode, Kernel], constants: Mapping[str, Tensor]
) -> list[PlannedStep]:
    """The steps that remain for every batch."""
    steps: list[PlannedStep] = []
    read_later = {graph.output}
    for node in reversed(graph.nodes):
        if set(node.outputs) - {""} <= constants.keys():
            continue
        operator, read = operator_of(node), set(node.inputs) - {""}
        freed = tuple(read - read_later)
        read_later |= read
        single, needs_like = operator.outputs == 1, operator.needs_like
        kernel, inputs, outputs = kernels[node], node.inputs, node.outputs
        steps.append(PlannedStep(kernel, inputs, outputs, single, needs_like, freed, str(node)))
    return steps[::-1]

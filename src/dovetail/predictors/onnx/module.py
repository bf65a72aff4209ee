"""Running a graph: an `nn.Module` that goes through the steps of its plan."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import PredictorError, UnsupportedError
from dovetail.core.file_limits import Meter
from dovetail.predictors.onnx.graph_traits import OnnxGraph, require_gradient, row_shape
from dovetail.predictors.onnx.memory import room
from dovetail.predictors.onnx.node import Kernel, OnnxNode
from dovetail.predictors.onnx.operators.table import compiled, operator_of

TRIAL = 3
"""Rows of the batch a model is tried on when it is read: two could be a size that stands in the file."""

Batch = Callable[[Tensor], Tensor]


class OnnxModule(nn.Module):
    """A graph as a torch module from (n, features) to (n, outputs).

    Float constants are buffers, so that copies and conversions take them along. Two more buffers show
    the precision in use: that of the input, and the narrowest, which tells the file as it is from a
    copy in another precision. In such a copy every cast to a float type goes to the copy's.
    """

    precision: Tensor
    narrowest: Tensor

    def __init__(self, graph: OnnxGraph, meter: Meter) -> None:
        super().__init__()
        self.register_buffer("precision", torch.zeros((), dtype=graph.dtype))
        self.register_buffer("narrowest", torch.zeros((), dtype=graph.narrowest_dtype))
        self._name = graph.name
        self._own_narrowest = graph.narrowest_dtype
        kernels = {node: compiled(node) for node in graph.nodes}  # refusals, before anything runs
        require_gradient(graph)
        with room(meter):
            constants = folded_constants(graph, kernels)
        self._plan = planned(graph, kernels, constants)
        self._fixed: list[Tensor | None] = [None] * self._plan.n_slots
        self._floats: list[tuple[int, str]] = []
        self._masks: list[int] = []
        for name in constants.keys() & self._plan.slots.keys():
            self._keep(name, constants[name])
        self._shape = row_shape(graph, constants)
        self._limits = meter.limits
        x = trial_batch(math.prod(self._shape), graph.dtype)
        self._takes_one = takes_one(self._rows, x, graph.sizes[0], meter)
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

    def shapes(self) -> tuple[dict[str, tuple[int, ...]], int]:
        """The shape of everything that is computed, by name, and the number of rows it was seen with."""
        rows = 1 if self._takes_one else TRIAL
        values = self._values(self.precision.new_zeros(rows, math.prod(self._shape)), frees=False)
        found = {name: values[slot] for name, slot in self._plan.slots.items()}
        return {name: tuple(value.shape) for name, value in found.items() if value is not None}, rows

    def constant(self, name: str) -> FloatArray | None:
        """A float constant by name, or None for anything else."""
        buffer = self._buffers.get(f"constant{self._plan.slots.get(name, 0)}")
        return None if buffer is None else buffer.to(dtype=torch.float64, device="cpu").numpy().copy()

    def _batch(self, x: Tensor) -> Tensor:
        return one_by_one(self._rows, x) if self._takes_one else self._rows(x)

    def _meter(self, rows: int) -> Meter:
        """For a batch larger than any before: a graph can make more of many rows than of few, each by each.

        What it may compute grows with the rows, which are the caller's choice.
        """
        assert self._limits.elements is not None
        allowed = self._limits.elements * math.ceil(rows / TRIAL)
        limits = replace(self._limits, elements=allowed, seconds=math.inf)
        return Meter(f"{self._name} with {rows} samples", limits, "load_predictor", PredictorError)

    def _rows(self, x: Tensor) -> Tensor:
        y = self._values(x)[self._plan.output]
        if y is not None and len(x) == 1:  # a Squeeze may have taken the samples' axis along
            y = y.reshape(1, -1)
        if y is None or y.ndim == 0 or len(y) != len(x):
            raise PredictorError(
                f"{self._name} turns {len(x)} samples into an output of shape "
                f"{None if y is None else tuple(y.shape)}; its first axis must be the samples."
            )
        return y.reshape(len(x), math.prod(y.shape[1:]))

    def _values(self, x: Tensor, frees: bool = True) -> list[Tensor | None]:
        """Every step in turn; what no later step reads is dropped on the way."""
        values = self._at_first(x)
        step: PlannedStep | None = None
        try:
            for step in self._plan.steps:
                result = step.kernel(*[values[slot] for slot in step.inputs])
                if step.single:
                    values[step.outputs[0]] = result
                else:
                    for slot, value in zip(step.outputs, result, strict=False):
                        values[slot] = value
                if frees:
                    for slot in step.freed:
                        values[slot] = None
        except (PredictorError, UnsupportedError):
            raise
        except Exception as reason:
            raise PredictorError(
                f"{self._name}: {step and step.label} fails: {type(reason).__name__}: {reason}"
            ) from reason
        return values

    def _at_first(self, x: Tensor) -> list[Tensor | None]:
        """The slots before the first step: constants, in the precision in use, and the input."""
        values, buffers = self._fixed.copy(), self._buffers
        values[LIKE] = self.narrowest
        for slot, name in self._floats:
            values[slot] = buffers[name]
        for slot in self._masks:
            values[slot] = self._as_in_use(values[slot])
        values[self._plan.input] = x.reshape(len(x), *self._shape)
        return values

    def _as_in_use(self, mask: Tensor | None) -> Tensor | None:
        """A constant that is no buffer, where the buffers are and in their precision."""
        if mask is None:
            return None
        as_written = self.narrowest.dtype == self._own_narrowest
        return mask.to(device=self.narrowest.device, dtype=mask.dtype if as_written else self.narrowest.dtype)

    def _keep(self, name: str, value: Tensor) -> None:
        """Store a constant: floats as a buffer, the rest (and masks of minus infinity) as it is."""
        slot = self._plan.slots[name]
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


def one_by_one(run: Batch, x: Tensor) -> Tensor:
    """Every row as a batch of its own, vectorised."""
    rows: Tensor = torch.vmap(lambda row: run(row.unsqueeze(0)).squeeze(0))(x)
    return rows


def trial_batch(features: int, dtype: torch.dtype) -> Tensor:
    """A few rows in [-1, 1], the same every time."""
    rng = torch.Generator().manual_seed(0)
    x = torch.rand(TRIAL, features, generator=rng, dtype=torch.float64) * 2.0 - 1.0
    return x.to(dtype)


def takes_one(run: Batch, x: Tensor, declared: int | None, meter: Meter) -> bool:
    """Whether rows must be taken one by one, found out on the few of `x`.

    Rows that influence each other in a graph made for many are left for the probe to refuse.
    """
    together = _tried(lambda: [run(x[: TRIAL - 1]), run(x)][1], meter)
    apart = _tried(lambda: torch.cat([run(row.unsqueeze(0)) for row in x]), meter)
    if isinstance(together, Tensor) and (declared != 1 or isinstance(apart, Exception)):
        return False
    if isinstance(together, Tensor) and isinstance(apart, Tensor) and _close(together, apart):
        return False
    vectorised = apart if isinstance(apart, Exception) else _tried(lambda: one_by_one(run, x), meter)
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
    """Equal but for the order of sums: a batch of three is not added up as one row is."""
    tolerance = 1e-9 if a.dtype == torch.float64 else 1e-4
    return a.shape == b.shape and torch.allclose(a, b, tolerance, tolerance, equal_nan=True)


ABSENT, LIKE, UNREAD = 0, 1, -1
"""Slots of no value of the graph: an input left out, the precision in use, outputs nobody reads."""


class PlannedStep(NamedTuple):
    """A node in the run: what it does, and which slots it reads, fills and frees."""

    kernel: Kernel
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    single: bool
    freed: tuple[int, ...]
    label: str


@dataclass(frozen=True)
class RunPlan:
    """The steps of a run, and the slots of the values that are met on the way."""

    steps: list[PlannedStep]
    slots: dict[str, int]
    input: int
    output: int

    @property
    def n_slots(self) -> int:
        """All slots, those of no value of the graph included."""
        return len(self.slots) + 3


def folded_constants(graph: OnnxGraph, kernels: Mapping[OnnxNode, Kernel]) -> dict[str, Tensor]:
    """Everything that does not depend on the input, computed once."""
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


def planned(graph: OnnxGraph, kernels: Mapping[OnnxNode, Kernel], constants: Mapping[str, Tensor]) -> RunPlan:
    """What is left to do for every batch, once the constants are known."""
    nodes = [node for node in graph.nodes if not set(node.outputs) - {""} <= constants.keys()]
    slots = _numbered(graph, nodes)
    output = slots[graph.output]
    return RunPlan(_scheduled(nodes, kernels, slots, output), slots, slots[graph.input], output)


def _numbered(graph: OnnxGraph, nodes: Iterable[OnnxNode]) -> dict[str, int]:
    """A slot for every value that is met while running."""
    names = [graph.input, graph.output]
    for node in nodes:
        names += [name for name in node.inputs + node.outputs if name]
    return {name: slot for slot, name in enumerate(dict.fromkeys(names), start=LIKE + 1)}


def _scheduled(
    nodes: Iterable[OnnxNode], kernels: Mapping[OnnxNode, Kernel], slots: Mapping[str, int], output: int
) -> list[PlannedStep]:
    """The steps in order, found from the last one back: a slot that nothing later reads is freed."""
    steps: list[PlannedStep] = []
    read_later = {output}
    for node in reversed(list(nodes)):
        operator = operator_of(node)
        inputs = tuple(slots[name] if name else ABSENT for name in node.inputs)
        outputs = tuple(slots[name] if name else UNREAD for name in node.outputs)
        freed = tuple(set(inputs) - read_later - {ABSENT})
        read_later |= set(inputs)
        arguments = (LIKE, *inputs) if operator.needs_like else inputs
        steps.append(PlannedStep(kernels[node], arguments, outputs, operator.outputs == 1, freed, str(node)))
    return steps[::-1]

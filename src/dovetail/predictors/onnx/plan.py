"""Planning a run: constants folded, every value given a slot, every slot freed when it is read last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from dovetail.core.errors import PredictorError, UnsupportedError
from dovetail.predictors.onnx.graph import OnnxGraph
from dovetail.predictors.onnx.node import OnnxNode
from dovetail.predictors.onnx.operators.operator import Kernel
from dovetail.predictors.onnx.operators.table import operator_of

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

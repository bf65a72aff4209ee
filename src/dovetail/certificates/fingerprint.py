"""A problem as one short text: equal problems have equal ones, on any machine.

The host's arrays, which columns each block ties, and every weight of its network. A network that is not known
operation by operation is in it by name only: nothing is proved from it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from dovetail.core.graph import Affine, Graph
from dovetail.core.problem import Problem

DIGITS = 32
"""Of the hash in base 16: 128 bits."""


def fingerprint(problem: Problem, graphs: Mapping[str, Graph | None]) -> str:
    """Of the problem, its networks as these graphs, by the blocks' names."""
    digest = hashlib.sha256()
    mip = problem.mip
    for array in (mip.cost, mip.A.data, mip.A.indices, mip.A.indptr, mip.row_lower, mip.row_upper):
        _enter(digest, array)
    for array in (mip.lower, mip.upper, mip.integer, np.array([mip.offset, mip.sign])):
        _enter(digest, array)
    for block in problem.blocks:
        _enter(digest, block.inputs)
        _enter(digest, block.outputs)
        _enter(digest, np.array([block.classifies, block.threshold], dtype=np.float64))
        digest.update(repr(block.description.dtypes).encode())
        graph = graphs[block.name]
        digest.update(b"unknown" if graph is None else b"graph")
        for step in () if graph is None else graph.steps:
            digest.update(repr((step.sources, step.size)).encode())
            _enter_operation(digest, step.operation)
    return digest.hexdigest()[:DIGITS]


def _enter_operation(digest: Any, operation: object) -> None:
    digest.update(type(operation).__name__.encode())
    if isinstance(operation, Affine):
        for array in (*operation.weights, operation.bias):
            _enter(digest, array)
    else:
        digest.update(repr(operation).encode())


def _enter(digest: Any, array: np.ndarray) -> None:
    """Shape and numbers, the same whatever the machine stores them in; -0 is 0."""
    array = np.ascontiguousarray(array)
    kind = "<f8" if array.dtype.kind == "f" else "<i8"
    digest.update(repr((kind, array.shape)).encode())
    digest.update((array.astype(kind) + 0).tobytes())

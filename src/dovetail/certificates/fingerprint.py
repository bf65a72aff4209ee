"""A problem as one short text: equal problems have equal ones, on any machine.

The host's arrays, which columns each block ties, and its network as its owner made it: layer by layer, or
operation by operation, before anything is multiplied out (products of weights differ in their last digits
between machines). A network that is known in neither way is in it by name only: nothing is proved from it.
"""

from __future__ import annotations

import hashlib
from dataclasses import fields
from typing import Any

import numpy as np
import scipy.sparse as sp

from dovetail.core.block import Block
from dovetail.core.class_rounding import plain_layers
from dovetail.core.layers import Layer
from dovetail.core.problem import Problem
from dovetail.core.program import Operation

DIGITS = 32
"""Of the hash in base 16: 128 bits."""


def fingerprint(problem: Problem) -> str:
    """Of the host, the blocks and their networks."""
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
        _enter_network(digest, block)
    return digest.hexdigest()[:DIGITS]


def _enter_network(digest: Any, block: Block) -> None:
    """What it is made of, as far as that is known."""
    layers = plain_layers(block)
    if layers is not None:
        for layer in layers:
            _enter_part(digest, layer)
        return
    program = block.description.program_if_known(block.inputs.shape[1])
    if program is None:
        digest.update(b"unknown")
        return
    for operation in program.operations:
        _enter_part(digest, operation)
    _enter(digest, program.outputs)


def _enter_part(digest: Any, part: Layer | Operation) -> None:
    digest.update(type(part).__name__.encode())
    for one in fields(part):
        value = getattr(part, one.name)
        if isinstance(value, sp.csr_array):
            for array in (value.data, value.indices, value.indptr):
                _enter(digest, array)
        elif isinstance(value, np.ndarray):
            _enter(digest, value)
        else:
            digest.update(repr(value).encode())


def _enter(digest: Any, array: np.ndarray) -> None:
    """Shape and numbers, the same whatever the machine stores them in; -0 is 0."""
    array = np.ascontiguousarray(array)
    kind = "<f8" if array.dtype.kind == "f" else "<i8"
    digest.update(repr((kind, array.shape)).encode())
    digest.update((array.astype(kind) + 0).tobytes())

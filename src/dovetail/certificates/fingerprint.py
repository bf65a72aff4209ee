"""A problem as one short text: equal problems have equal fingerprints, on any machine.

It covers the arrays of the program, the columns of each block, and its network in the owner's form: operation
by operation, before weights are multiplied (products of weights differ in their last digits between
machines).
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from dovetail.core.block import Block
from dovetail.core.problem import Problem

DIGITS = 32
"""Number of hexadecimal digits: 128 bits."""


def fingerprint(problem: Problem) -> str:
    """The fingerprint of the program, the blocks and their networks."""
    digest = hashlib.sha256()
    mip = problem.mip
    for array in (mip.cost, mip.A.data, mip.A.indices, mip.A.indptr, mip.row_lower, mip.row_upper):
        _add_array(digest, array)
    for array in (mip.lower, mip.upper, mip.integer, np.array([mip.offset, mip.sign])):
        _add_array(digest, array)
    for block in problem.blocks:
        _add_array(digest, block.inputs)
        _add_array(digest, block.outputs)
        _add_array(digest, np.array([block.classifies, block.threshold], dtype=np.float64))
        digest.update(repr(block.description.dtypes).encode())
        _enter_network(digest, block)
    return digest.hexdigest()[:DIGITS]


def _enter_network(digest: Any, block: Block) -> None:
    program = block.description.program_if_known(block.inputs.shape[1])
    if program is None:
        digest.update(b"unknown")
        return
    for operation in program.operations:
        for part in operation.parts():
            if isinstance(part, str):
                digest.update(part.encode())
            else:
                _add_array(digest, part)
    _add_array(digest, program.outputs)


def _add_array(digest: Any, array: np.ndarray) -> None:
    """Add shape and numbers, independent of the machine; -0 counts as 0."""
    array = np.ascontiguousarray(array)
    kind = "<f8" if array.dtype.kind == "f" else "<i8"
    digest.update(repr((kind, array.shape)).encode())
    digest.update((array.astype(kind) + 0).tobytes())

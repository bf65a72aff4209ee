"""A problem as one short text: equal problems have equal fingerprints, on any machine.

It covers the arrays of the program, the columns of each block, and its predictor: a network in the owner's
form, operation by operation, before weights are multiplied (products of weights differ in their last digits
between machines); trees node by node; quadratic functions. The operations of other predictors are not known
(`covers_all`). Templates are not written out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any

import numpy as np

from dovetail.core.block import Block
from dovetail.core.problem import Problem

DIGITS = 32
"""Number of hexadecimal digits: 128 bits."""


def fingerprint(problem: Problem) -> str:
    """The fingerprint of the program, the blocks and their predictors."""
    digest = hashlib.sha256()
    _add_parts(digest, _program_parts(problem))
    for block in problem.blocks:
        _add_array(digest, block.inputs)
        _add_array(digest, block.outputs)
        _add_array(digest, np.array([block.classifies, block.threshold], dtype=np.float64))
        digest.update(repr(block.description.dtypes).encode())
        parts = _predictor_parts(block)
        _add_parts(digest, ("unknown",) if parts is None else parts)
    return digest.hexdigest()[:DIGITS]


def covers_all(problem: Problem) -> bool:
    """Whether a fingerprint covers what every predictor computes."""
    return all(_predictor_parts(block) is not None for block in problem.blocks)


def _program_parts(problem: Problem) -> Iterator[str | np.ndarray]:
    """The arrays of the program as it is stated, templates after the `Mip`."""
    stated = problem.stated
    mip = stated.host
    if mip is not None:
        yield from (mip.cost, mip.A.data, mip.A.indices, mip.A.indptr, mip.row_lower, mip.row_upper)
        yield from (mip.lower, mip.upper, mip.integer)
    yield np.array([stated.offset, stated.sign])
    for template in stated.waiting:
        yield f"template of {template.count}"
        for name, family in template.families.items():
            yield f"{name} {family.width} {family.integer}"
            yield from (family.lower, family.upper, family.cost)
        for row in (*template.rows, *template.coupling):
            yield f"{row.width} {row.summed} {list(row.coefficients)} {list(row.host)}"
            yield from (*row.coefficients.values(), *row.host.values(), row.lower, row.upper)


def _predictor_parts(block: Block) -> list[str | np.ndarray] | None:
    """Everything that defines a predictor; None if its operations are not known."""
    known, features = block.description, block.inputs.shape[1]
    program = known.program_if_known(features)
    if program is not None:
        operations = [part for operation in program.operations for part in operation.parts()]
        return [*operations, program.outputs]
    trees = known.trees_if_known()
    if trees is not None:
        return [*_fields(trees)]
    if known.quadratic is not None:
        return [part for function in known.quadratic(features) for part in _fields(function)]
    return None


def _fields(thing: Any) -> Iterator[str | np.ndarray]:
    for one in fields(thing):
        value = getattr(thing, one.name)
        yield value if isinstance(value, np.ndarray) else repr(value)


def _add_parts(digest: Any, parts: Iterable[str | np.ndarray]) -> None:
    for part in parts:
        if isinstance(part, str):
            digest.update(part.encode())
        else:
            _add_array(digest, part)


def _add_array(digest: Any, array: np.ndarray) -> None:
    """Add shape and numbers, independent of the machine; -0 counts as 0."""
    array = np.ascontiguousarray(array)
    kind = "<f8" if array.dtype.kind == "f" else "<i8"
    digest.update(repr((kind, array.shape)).encode())
    digest.update((array.astype(kind) + 0).tobytes())

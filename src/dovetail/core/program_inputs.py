"""A program as part of a longer row: inputs behind its own, which it does not look at."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
from scipy import sparse

from dovetail.core.arrays import IntArray
from dovetail.core.program import Operation, Program


def with_more_inputs(program: Program, extra: int) -> Program:
    """The same program over so many inputs more; places of all numbers but its own inputs move up."""
    if not extra:
        return program
    own = program.inputs

    def moved(places: IntArray) -> IntArray:
        return np.where(places >= own, places + extra, places)

    def wider(matrix: sparse.csr_array) -> sparse.csr_array:
        rows, numbers = matrix.shape
        parts = (matrix.data, moved(matrix.indices), matrix.indptr)
        return sparse.csr_array(parts, shape=(rows, numbers + extra))

    def shifted(one: Operation) -> Operation:
        changed: dict[str, Any] = {}
        for place in fields(one):
            value = getattr(one, place.name)
            if isinstance(value, sparse.csr_array):
                changed[place.name] = wider(value)
            elif (
                isinstance(value, np.ndarray) and value.dtype.kind == "i"
            ):  # places; what is a number is none
                changed[place.name] = moved(value)
        return replace(one, **changed)

    operations = tuple(map(shifted, program.operations))
    return replace(program, inputs=own + extra, operations=operations, outputs=moved(program.outputs))

"""Several programs over the same inputs as one, the operations of one after those of the other."""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.core.arrays import IntArray
from dovetail.core.program import Operation, Program, Recording
from dovetail.core.program_inputs import with_more_inputs


def together(programs: Sequence[Program]) -> tuple[Recording, list[IntArray]]:
    """A recording that goes on where the last ends, and where the outputs of each are."""
    inputs = programs[0].inputs
    operations, places, numbers = list[Operation](), list[IntArray](), 0
    for program in programs:
        moved = with_more_inputs(program, numbers)  # the numbers so far are inputs it does not look at
        operations += moved.operations
        places.append(moved.outputs)
        numbers += sum(one.size for one in program.operations)
    formats = frozenset().union(*(program.formats for program in programs))
    convolves = any(program.convolves for program in programs)
    return Recording.resumed(Program(inputs, tuple(operations), places[0], formats, convolves)), places

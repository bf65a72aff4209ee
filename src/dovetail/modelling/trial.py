"""One more predictor, tried on a copy before anything is kept: nothing of the owner's moves."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from numbers import Real
from typing import TypeVar

import numpy as np

from dovetail.core import probe
from dovetail.core.arrays import IntArray, ObjectArray
from dovetail.core.block import Block
from dovetail.core.description import Description
from dovetail.core.errors import ModelError
from dovetail.core.foreign import ForeignModel, Places, Reading
from dovetail.core.problem import Problem
from dovetail.modelling.attachment import Attachment
from dovetail.modelling.registry import Registry
from dovetail.modelling.shapes import columns_of, input_entries, input_places, sample_places, with_numbers
from dovetail.models.own import OwnModel

Found = TypeVar("Found")


class Trial:
    """The model's columns and all that is attached so far, to see whether one more fits."""

    def __init__(self, foreign: ForeignModel, registry: Registry, own: tuple[Block, ...] | None) -> None:
        """`own` are the blocks of a `dovetail.Problem`, which has them without being asked."""
        self._foreign, self._registry, self._own = foreign, registry, own
        self._reading = foreign.read(rows=False)

    def _keys(self, entries: ObjectArray) -> set[Hashable]:
        """What the variables in an array are known by."""
        return {self._foreign.key(entry) for entry in entries.flat if not isinstance(entry, (Real, np.bool_))}

    def keys_of(self, new: Attachment) -> tuple[set[Hashable], set[Hashable]]:
        """What its inputs and its outputs are known by."""
        outputs = self._foreign.unpack(new.outputs)
        return self._keys(input_entries(self._foreign, new)), self._keys(outputs)

    def attach(self, new: Attachment) -> None:
        """Accept `new`, or raise what is wrong with it."""
        inputs, outputs = self._found(new, sample_places)
        read, written = self.keys_of(new)
        involved = self._registry.involves(read, written)
        problem, columns = self._problem(inputs, self._registry.attachments if involved else ())
        new.add_to(problem, columns, outputs.column)

    def has_continuous_outputs(self, new: Attachment) -> bool:
        """Whether any column that was given for an output may be between two integers."""
        _, outputs = self._found(new, sample_places)
        return not bool(np.all(self._reading.mip.integer[outputs.column]))

    def described(self, new: Attachment) -> Description:
        """What the predictor says of itself, before outputs and their kind are chosen."""
        problem, columns = self._problem(self._found(new, input_places), ())
        return probe.described(new.name, new.predictor, problem.mip, columns)

    def attach_with_fresh_outputs(self, new: Attachment, outputs_per_sample: int) -> tuple[int, int]:
        """Accept `new` with new columns as its outputs, and say how many it needs."""
        problem, columns = self._problem(self._found(new, input_places), ())
        shape = len(columns), outputs_per_sample
        outputs = OwnModel(problem).create(shape, binary=new.output_type == "classification", name=new.name)
        new.add_to(problem, columns, outputs)
        return shape

    def _found(self, new: Attachment, find: Callable[[ForeignModel, Reading, Attachment], Found]) -> Found:
        """What `find` finds among the columns, or among those that only rows know."""
        try:
            return find(self._foreign, self._reading, new)
        except ModelError:
            self._reading = self._foreign.read()
            return find(self._foreign, self._reading, new)

    def _problem(self, inputs: Places, before: Sequence[Attachment]) -> tuple[Problem, IntArray]:
        """The columns with earlier blocks over them, and where the new inputs are."""
        host = self._reading.mip
        if self._own is not None:
            mip = with_numbers(host, [inputs])
            return Problem(mip).derived(mip, self._own), columns_of(mip, host.n_columns, inputs)
        places = [sample_places(self._foreign, self._reading, attached) for attached in before]
        mip = with_numbers(host, [inputs, *(into for into, _ in places)])
        blocks = []
        for attached, (into, out) in zip(before, places, strict=True):
            assert attached.block is not None
            columns = columns_of(mip, host.n_columns, into)
            blocks.append(replace(attached.block, inputs=columns, outputs=out.column))
        return Problem(mip).derived(mip, tuple(blocks)), columns_of(mip, host.n_columns, inputs)

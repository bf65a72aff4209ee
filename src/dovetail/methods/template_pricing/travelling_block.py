"""A block as other processes need it: its predictor and what decides about classes, without its samples."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from dovetail.core.block import Block
from dovetail.networks.layers import Layer
from dovetail.run.guard import unguarded


def travelling(block: Block) -> Block:
    """No columns and no closures: layers are looked up here, and the owner's predictor itself is sent."""
    layers = block.description.layers_if_known()
    description = replace(
        block.description,
        layers=None if layers is None else partial(_known, layers),
        program=None,
        other_forms=(),
    )
    return replace(
        block,
        predictor=unguarded(block.predictor),
        description=description,
        inputs=block.inputs[:0],
        outputs=block.outputs[:0],
        training_range=None,
    )


def _known(layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
    return layers

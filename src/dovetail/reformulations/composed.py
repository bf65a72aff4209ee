"""Predictors one after the other as one predictor: linear maps and networks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import torch

from dovetail.core.arrays import FloatArray
from dovetail.core.description import Description
from dovetail.core.predictor import Predictor
from dovetail.networks.arithmetic import FLOAT64
from dovetail.networks.layers import Dense, Layer, program_of

if TYPE_CHECKING:
    from dovetail.core.predictor import Forward
    from dovetail.networks.program import Program


@dataclass(frozen=True, eq=False)
class Linear:
    """weight x + bias, in float64."""

    dense: Dense

    def predict(self, X: FloatArray) -> FloatArray:
        """The values for each row of `X`."""
        return np.asarray(X @ self.dense.weight.T + self.dense.bias)

    def snapshot(self, device: str) -> Forward:
        """The same with torch tensors."""
        weight, bias = (torch.tensor(part, device=device) for part in (self.dense.weight, self.dense.bias))
        return lambda U: U @ weight.T + bias

    def describe(self, X: FloatArray) -> Description:
        """One layer."""
        return Description(
            "linear map",
            features=self.dense.weight.shape[1],
            outputs=len(self.dense.bias),
            smooth=True,
            ends_in_sigmoid=False,
            layers=lambda: (self.dense,),
            program=lambda features: program_of((self.dense,), features, FLOAT64),
        )


@dataclass(frozen=True, eq=False)
class Composed:
    """Predictors, each of which reads all outputs of the one before."""

    parts: tuple[Predictor, ...]

    def predict(self, X: FloatArray) -> FloatArray:
        """The answers of the last one."""
        return reduce(lambda values, part: part.predict(values), self.parts, X)

    def snapshot(self, device: str) -> Forward:
        """The copies of all, one after the other."""
        copies = [part.snapshot(device) for part in self.parts]
        return lambda U: reduce(lambda values, copy: copy(values), copies, U)

    def describe(self, X: FloatArray) -> Description:
        """The description of the last one, with the layers and programs of all."""
        known = list[Description]()
        for part in self.parts:
            sizes = {"features": X.shape[1]}
            description = part.describe(X)
            X = part.predict(X)
            known.append(replace(description, **sizes, outputs=X.shape[1]))
        last = known[-1]
        layers = [one.layers for one in known if one.layers is not None]
        programs = [(one.program, one.features) for one in known if one.program is not None]

        def all_layers() -> tuple[Layer, ...]:
            return tuple(layer for read in layers for layer in read())

        def program(features: int) -> Program:
            made = [read(width or features) for read, width in programs]
            return reduce(lambda first, second: second.after(first), made)

        name = next((k.name for one, k in zip(self.parts, known, strict=True) if type(one) is not Linear), "")
        return Description(
            name or last.name,
            last.device,
            known[0].features,
            last.outputs,
            dtypes=tuple(dict.fromkeys(dtype for one in known for dtype in one.dtypes)),
            has_float64_copy=all(one.has_float64_copy for one in known),
            smooth=all(one.smooth for one in known),
            ends_in_sigmoid=last.ends_in_sigmoid,
            is_classifier=last.is_classifier,
            is_multilabel=last.is_multilabel,
            layers=all_layers if len(layers) == len(known) else None,
            program=program if len(programs) == len(known) else None,
        )


def same_network(one: Description, other: Description) -> bool:
    """Whether both are the same layers, with the same numbers."""
    layers, others = one.layers_if_known(), other.layers_if_known()
    if layers is None or others is None or len(layers) != len(others) or one.dtypes != other.dtypes:
        return False

    def alike(a: Layer, b: Layer) -> bool:
        if isinstance(a, Dense) and isinstance(b, Dense):
            return np.array_equal(a.weight, b.weight) and np.array_equal(a.bias, b.bias)
        return a == b

    return all(map(alike, layers, others))


def composed(*parts: Predictor) -> Composed:
    """The predictors one after the other; those that are composed themselves part by part, and neighbouring
    linear maps as one."""
    flat = [one for part in parts for one in (part.parts if isinstance(part, Composed) else (part,))]
    found = list[Predictor]()
    for part in flat:
        before = found[-1] if found else None
        if isinstance(part, Linear) and isinstance(before, Linear):
            (one, two) = before.dense, part.dense
            found[-1] = Linear(Dense(two.weight @ one.weight, two.weight @ one.bias + two.bias))
        else:
            found.append(part)
    return Composed(tuple(found))

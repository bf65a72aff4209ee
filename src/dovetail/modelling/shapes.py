"""Arrays of variables as samples, and as the columns that are behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dovetail.core.arrays import IntArray, ObjectArray
from dovetail.core.errors import PredictorError
from dovetail.core.foreign import NUMBER, ForeignModel, Places, Reading, locate
from dovetail.core.mip import Mip
from dovetail.modelling.attachment import Attachment


def sample_places(foreign: ForeignModel, reading: Reading, attached: Attachment) -> tuple[Places, Places]:
    """(n_samples, n_features) and (n_samples, n_outputs)."""
    inputs = input_places(foreign, reading, attached)
    what = f"{attached.name}: output_vars"
    found = locate(foreign, reading, what, foreign.unpack(attached.outputs))
    if np.any(found.column == NUMBER):
        raise PredictorError(
            f"{attached.name}: output_vars holds a number; outputs must be variables. To ask for a value, "
            "fix the variable or add a row."
        )
    samples = len(inputs.column)
    return inputs, Places(as_outputs(found.column, samples), as_outputs(found.number, samples))


def input_places(foreign: ForeignModel, reading: Reading, attached: Attachment) -> Places:
    """(n_samples, n_features)."""
    return locate(foreign, reading, f"{attached.name}: input_vars", input_entries(foreign, attached))


def input_entries(foreign: ForeignModel, attached: Attachment) -> ObjectArray:
    """(n_samples, n_features) variables and numbers; names of categories are replaced by their numbers."""
    entries: ObjectArray = as_samples(foreign.unpack(attached.inputs))
    if entries.size == 0:
        raise PredictorError(f"{attached.name}: input_vars is empty; give (n_samples, n_features).")
    named = {j: names for j, names in attached.categories.items() if j < entries.shape[1]}
    if not named:
        return entries
    numbered = entries.copy()
    for feature, names in named.items():
        for i, entry in enumerate(entries[:, feature]):
            if not isinstance(entry, str):  # a variable, or the number itself
                continue
            if entry not in names:
                raise PredictorError(
                    f"{attached.name}: input_vars holds {entry!r} as feature {feature}, which the predictor "
                    f"was not trained on; it knows {', '.join(map(str, names))}."
                )
            numbered[i, feature] = float(names.index(entry))
    return numbered


def as_samples(given: Any) -> Any:
    """(n_samples, n_features): a vector is one sample, further dimensions are flattened."""
    return np.atleast_2d(given) if given.ndim < 3 else given.reshape(len(given), -1)


def as_outputs(given: Any, samples: int) -> Any:
    """(n_samples, n_outputs): a vector is one sample, or one output of each of several samples."""
    return given[:, None] if given.ndim == 1 and samples > 1 else as_samples(given)


def with_numbers(mip: Mip, inputs: Sequence[Places]) -> Mip:
    """A column for each different number among the inputs, fixed to it."""
    numbers = np.unique(np.concatenate([[], *(found.number[found.column == NUMBER] for found in inputs)]))
    if not numbers.size:
        return mip
    names = [f"constant {number!r}" for number in numbers.tolist()]
    return mip.with_columns(numbers, numbers, np.zeros(numbers.size, dtype=bool), names)


def columns_of(mip: Mip, first: int, inputs: Places) -> IntArray:
    """Input columns, numbers replaced by the columns fixed to them; those begin at `first`, sorted."""
    constants = first + np.searchsorted(mip.lower[first:], inputs.number)
    return np.where(inputs.column == NUMBER, constants, inputs.column)

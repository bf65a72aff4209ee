"""What `add_predictor_constr` gives back."""

from __future__ import annotations

import sys
import warnings
from typing import Any, TextIO, TypeVar

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.containers import frame_of
from dovetail.core.errors import DovetailError, PredictorError
from dovetail.core.foreign import ForeignModel
from dovetail.core.names import in_short
from dovetail.core.problem import Problem
from dovetail.core.words import facts, several
from dovetail.modelling.attachment import Attachment, as_outputs, as_samples, registry_of

Kind = TypeVar("Kind", bound="PredictorConstr")

MOST_SHOWN = 4
"""Output values that are shown in one line."""


class PredictorConstr:
    """What `add_predictor_constr` attached; its values are those of the model's last solve.

    >>> import dovetail as dt
    >>> problem = dt.Problem(dt.Mip(cost=[0.0, -1.0], upper=[2.0, 9.0], names=["x", "y"]))
    >>> constr = dt.add_predictor_constr(problem, lambda X: X**2, ["x"], ["y"])
    >>> result = dt.solve(problem, time_limit=2, log=False)
    >>> constr.output_values.shape, float(constr.get_error().max()) <= 1e-6
    ((1, 1), True)
    """

    def __init__(
        self, model: Any, foreign: ForeignModel, attached: Attachment, created: Any, predictor: Any
    ) -> None:
        self._model, self._foreign, self._attached, self._created = model, foreign, attached, created
        self.predictor = predictor
        """As it was passed."""
        entries = as_samples(foreign.unpack(attached.inputs))
        self.input = foreign.table(attached.inputs, entries)
        """The inputs, (n_samples, n_features) where the tool has tables of variables; else as passed."""
        made = as_outputs(foreign.unpack(attached.outputs), len(entries))
        self.output = foreign.table(attached.outputs, made)
        """The outputs, likewise (n_samples, n_outputs)."""

    def held_as(self, kind: type[Kind]) -> Kind:
        """The same attachment with what a derived class offers besides."""
        other = kind.__new__(kind)
        other.__dict__.update(self.__dict__)
        return other

    @property
    def name(self) -> str:
        """How log and messages call it."""
        return self._attached.name

    @property
    def input_values(self) -> Any:
        """(n_samples, n_features) values of the inputs; a frame where a frame or a series was passed.

        A frame has the names of categories, as it was passed and as the predictor was trained on them.
        """
        found = frame_of(self._attached.inputs, self._values[0])
        for feature, names in self._attached.categories.items() if hasattr(type(found), "iloc") else ():
            column = found.columns[feature]
            found[column] = [names[round(place)] for place in found[column]]
        return found

    @property
    def output_values(self) -> Any:
        """(n_samples, n_outputs) values of the outputs; a frame where a frame was passed."""
        given, values = self._attached.outputs, self._values[1]
        return frame_of(given, values) if hasattr(type(given), "columns") else values

    def get_error(self, eps: float | None = None) -> FloatArray:
        """(n_samples, n_outputs) |what the predictor says of the inputs - the outputs|.

        `eps` is taken for the peers' sake, who print a word about larger ones.
        """
        error = self._attached.error(*self._values)
        if eps is not None and np.max(error) > eps:
            warnings.warn(f"{self.name}: the largest error is {np.max(error):.1e}", stacklevel=2)
        return error

    def __repr__(self) -> str:
        block = self._attached.block
        assert block is not None
        return f"<PredictorConstr {in_short(self.name)}: {block.in_words}; {self._outputs_in_short()}>"

    def _repr_html_(self) -> str:
        block = self._attached.block
        assert block is not None
        rows = [("predictor", block.in_words), ("outputs", self._outputs_in_short())]
        if self._attached.values is not None:
            rows.append(("largest error", f"{float(self.get_error().max()):.1e}"))
        return facts(f"PredictorConstr {self.name}", rows)

    def _outputs_in_short(self) -> str:
        """The values of the outputs, or why there are none."""
        if self._attached.values is None:
            return "no values yet" if "no solution yet" in self._attached.trouble else self._attached.trouble
        values = self._attached.values[1].ravel()
        shown = ", ".join(f"{value:.6g}" for value in values[:MOST_SHOWN])
        return f"outputs {shown}{', ...' if values.size > MOST_SHOWN else ''}"

    def print_stats(self, file: TextIO | None = None) -> None:
        """What is attached, in a few lines."""
        attached = self._attached
        assert attached.block is not None
        (n, d), q = attached.block.inputs.shape, attached.block.outputs.shape[1]
        made = "made by dovetail" if self._created is not None else "the model's own"
        print(
            f"{attached.name}: {attached.block.description.name} ({attached.output_type})\n"
            f"  {several(n, 'sample')}, {several(d, 'input')} -> {several(q, 'output')} each ({made})\n"
            f"  {'float64' if attached.block.description.is_float64 else 'lower precision'}, on "
            f"{attached.block.description.device}; no rows or variables are added for its neurons",
            file=file or sys.stdout,
        )

    @property
    def is_attached(self) -> bool:
        """Whether it has not been removed."""
        return self._attached in registry_of(self._model).attachments

    def remove(self) -> None:
        """Detach it: later solves do not see it. Outputs made for it are removed from the model."""
        attachments = registry_of(self._model).attachments
        if self._attached not in attachments:
            raise PredictorError(f"{self.name} has been removed before.")
        if self._created is not None:
            self._foreign.discard(self._created)
        if isinstance(self._model, Problem):
            self._model.remove_predictor(self.name)
        attachments.remove(self._attached)

    @property
    def _values(self) -> tuple[FloatArray, FloatArray]:
        if self._attached.values is None:
            raise DovetailError(f"{self.name}: {self._attached.trouble}.")
        return self._attached.values

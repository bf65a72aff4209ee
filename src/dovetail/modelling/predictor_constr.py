"""What `add_predictor_constr` gives back."""

from __future__ import annotations

import sys
from typing import Any, TextIO

from dovetail.core.arrays import FloatArray
from dovetail.core.containers import like
from dovetail.core.errors import DovetailError, PredictorError
from dovetail.core.foreign import ForeignModel
from dovetail.core.html_table import facts
from dovetail.core.names import in_short
from dovetail.core.problem import Problem
from dovetail.modelling.attachment import Attachment
from dovetail.modelling.registry import registry_of
from dovetail.modelling.shapes import as_samples

MOST_SHOWN = 4
"""Output values that are shown in one line."""


class PredictorConstr:
    """What `add_predictor_constr` attached; its values are those of the model's last solve.

    >>> import dovetail as dt
    >>> problem = dt.Problem(dt.Mip(cost=[0.0, -1.0], upper=[2.0, 9.0], names=["x", "y"]))
    >>> constr = dt.add_predictor_constr(problem, lambda X: X**2, ["x"], ["y"])
    >>> result = dt.solve(problem, time_limit=2, log=False)
    >>> constr.output_values.shape, float(constr.get_error().max()) <= 1e-6
    ((1,), True)
    """

    def __init__(self, model: Any, foreign: ForeignModel, attached: Attachment, created: Any) -> None:
        self._model, self._foreign, self._attached, self._created = model, foreign, attached, created
        self.input, self.output = attached.inputs, attached.outputs

    @property
    def name(self) -> str:
        """How log and messages call it."""
        return self._attached.name

    @property
    def input_values(self) -> Any:
        """Values of the inputs, in the shape they were passed; a frame or series where that was passed."""
        return _framed(self._attached.inputs, self._values[0])

    @property
    def output_values(self) -> Any:
        """Values of the outputs, likewise."""
        return _framed(self._attached.outputs, self._values[1])

    def get_error(self, eps: float | None = None) -> FloatArray:
        """|what the predictor says of the inputs - the outputs|, in the shape of the outputs.

        `eps` is taken for the peers' sake: class boundaries are judged without a tolerance here.
        """
        inputs, outputs = self._values
        return self._attached.error(as_samples(inputs), outputs)

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
        n, d = attached.block.inputs.shape
        made = "made by dovetail" if self._created is not None else "the model's own"
        print(
            f"{attached.name}: {attached.block.description.name} ({attached.output_type})\n"
            f"  {n} samples, {d} inputs -> {attached.block.outputs.shape[1]} outputs each ({made})\n"
            f"  {'float64' if attached.block.description.is_float64 else 'lower precision'}, on "
            f"{attached.block.description.device}; no rows or variables are added for its neurons",
            file=file or sys.stdout,
        )

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


def _framed(given: Any, values: FloatArray) -> Any:
    """Values with the labels of a frame of pandas; everything else is an array, as in the peers."""
    return like(given, values) if hasattr(type(given), "iloc") else values

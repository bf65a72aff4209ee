"""A decision as other models see it: what was promised, and what remains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.words import facts, listed, several
from dovetail.run.trace import frame


@dataclass(frozen=True, eq=False)
class SecondOpinion:
    """The objective of one decision by the solve's own predictors and by other models.

    With a reference decision, gains are differences from the reference, both judged by the same model.

    >>> import dovetail as dt
    >>> problem = dt.Problem(dt.Mip([0.0, 1.0], upper=[3.0, 99.0], sense="max"))
    >>> block = problem.add_predictor(lambda X: 2.0 * X, [0], [1])
    >>> result = dt.solve(problem, log=False)
    >>> print(result.second_opinion([lambda X: X, lambda X: 1.5 * X], against=[1.0, 0.0]))
    gain over the reference: promised 4, kept 2.5 +- 0.707107 (62 %) by 2 models, at worst 2
    objective: promised 6, kept 3.75 +- 1.06066, at worst 3
    """

    sense: str
    promised: float
    """The objective by the solve's own predictors."""
    objectives: FloatArray
    """The objective by each model."""
    reference_promised: float | None = None
    """The objective of the reference decision by the solve's own predictors."""
    reference_objectives: FloatArray | None = None
    """The same by each model."""
    broken: Mapping[str, FloatArray] = ()  # type: ignore[assignment]
    """By name of a constraint that does not hold with every model: by how much each model violates it."""
    refitted: bool = False
    """Whether the models are the solve's own predictors, trained again."""

    @property
    def sign(self) -> float:
        """1 if larger objectives are better, otherwise -1."""
        return 1.0 if self.sense == "max" else -1.0

    @property
    def promised_gain(self) -> float | None:
        """By how much the decision is better than the reference, by the solve's own predictors."""
        return (
            None if self.reference_promised is None else self.sign * (self.promised - self.reference_promised)
        )

    @property
    def gains(self) -> FloatArray | None:
        """By how much the decision is better than the reference, by each model."""
        if self.reference_objectives is None:
            return None
        return np.asarray(self.sign * (self.objectives - self.reference_objectives))

    @property
    def kept(self) -> float | None:
        """The mean share of the promised gain that remains; None without a promised gain."""
        if self.gains is None or not self.promised_gain or self.promised_gain < 0.0:
            return None
        return float(self.gains.mean() / self.promised_gain)

    def rows(self) -> Iterator[tuple[str, float, float, float, float]]:
        """What is compared, promised, the models' mean, their standard deviation, and the worst model."""
        if self.gains is not None and self.promised_gain is not None:
            yield "gain over the reference", self.promised_gain, *_spread(self.gains, 1.0)
        yield "objective", self.promised, *_spread(self.objectives, self.sign)

    def sentences(self) -> Iterator[str]:
        """Constraints that other models see violated."""
        for name, amounts in self.broken.items():
            count = f"{np.count_nonzero(amounts)} of {several(amounts.size, 'model')}"
            yield f"{name} is violated by {count}, at worst by {amounts.max():.6g}"

    @property
    def models(self) -> str:
        """The models in words."""
        return several(self.objectives.size, "refitted model" if self.refitted else "model")

    def to_frame(self) -> Any:
        """One row per model as a pandas DataFrame."""
        columns: dict[str, Any] = {"objective": self.objectives}
        if self.reference_objectives is not None:
            columns |= {"reference": self.reference_objectives, "gain": self.gains}
        return frame(
            "SecondOpinion.to_frame", columns | {f"{name} violated by": v for name, v in self.broken.items()}
        )

    def __str__(self) -> str:
        lines = [
            f"{what}: promised {promised:.6g}, kept {mean:.6g} +- {spread:.6g}, at worst {worst:.6g}"
            for what, promised, mean, spread, worst in self.rows()
        ]
        share = "" if self.kept is None else f" ({100.0 * self.kept:.0f} %)"
        lines[0] = lines[0].replace(", at worst", f"{share} by {self.models}, at worst")
        return "\n".join([*lines, *self.sentences()])

    def __repr__(self) -> str:
        return f"<SecondOpinion: {listed(str(self).splitlines())}>"

    def _repr_html_(self) -> str:
        lines = str(self).splitlines()
        return facts("second opinion", [(f"{k + 1}", line) for k, line in enumerate(lines)])


def _spread(values: FloatArray, sign: float) -> tuple[float, float, float]:
    """Mean, standard deviation of a sample, and the worst."""
    deviation = float(values.std(ddof=1)) if values.size > 1 else 0.0
    return float(values.mean()), deviation, float(sign * np.min(sign * values))

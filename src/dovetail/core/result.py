"""What a solve returns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dovetail.core import page
from dovetail.core.arrays import FloatArray, resolve
from dovetail.core.budget import StopReason
from dovetail.core.check import Violation, Worst
from dovetail.core.errors import DovetailError, OptionError
from dovetail.core.foreign import Origin
from dovetail.core.seen import Outside
from dovetail.core.stopwatch import Profile
from dovetail.core.trace import Residual, Row, Trace


class Status(StrEnum):
    """What is known about the problem and the point."""

    OPTIMAL = "optimal"
    """A proven bound meets the point's re-evaluated objective within 1e-6."""
    FEASIBLE = "feasible"
    """The point is verified; nothing better is excluded."""
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    NO_SOLUTION = "no_solution"
    """No point passed the check; nothing is proved."""
    ERROR = "error"


class BoundKind(StrEnum):
    """What stands behind a bound."""

    PROVEN = "proven"
    ESTIMATE = "estimate"
    NONE = "none"


@dataclass(frozen=True, eq=False)
class Multipliers:
    """The prices the couplings ended with, by block: what a later solve can start from."""

    inputs: Mapping[str, FloatArray]
    outputs: Mapping[str, FloatArray]
    rho: float
    """The penalty they were found with; a later solve begins with its own."""


@dataclass(frozen=True, eq=False)
class Result:
    """The answer of `dovetail.solve`. Objective, bound and gap are in the user's sense."""

    status: Status
    stop_reason: StopReason
    objective: float | None
    bound: float | None
    bound_kind: BoundKind
    x: FloatArray | None
    violation: Violation | None
    residual: float | None
    """Largest primal residual of the last iteration; None for methods without a coupling."""
    multipliers: Multipliers | None
    iterations: int
    seconds: float
    trace: Trace
    method: str
    message: str
    profile: Profile = field(default_factory=Profile)
    names: tuple[str, ...] | None = None
    outside: tuple[Outside, ...] = ()
    """Inputs beyond what their predictor was trained on, the farthest first; needs `data=`."""
    origin: Origin | None = field(default=None, repr=False)
    """The foreign model that was solved, if it was one; a result read from a file has none."""

    @property
    def gap(self) -> float | None:
        """|objective - bound| / |objective|, or None without both; 0 where both are 0."""
        if self.objective is None or self.bound is None:
            return None
        apart = abs(self.objective - self.bound)
        return 0.0 if apart == 0.0 else apart / max(abs(self.objective), 1e-12)

    def value(self, columns: Any) -> Any:
        """Values of columns given by index, name, or as variables of the model that was solved.

        The values have the shape of what was given.
        """
        if self.x is None:
            raise DovetailError(f"there is no point to read: the status is {self.status.value}.")
        if self.origin is not None:
            return self.origin.value(columns, self.x)
        picked = self.x[resolve("value()", columns, self.x.size, self._index)]
        return float(picked) if np.ndim(picked) == 0 else picked

    @cached_property
    def _index(self) -> dict[str, int] | None:
        return None if self.names is None else {name: j for j, name in enumerate(self.names)}

    def __getstate__(self) -> dict[str, Any]:
        """All but the model that was solved: most tools' models cannot be pickled or copied."""
        return {**self.__dict__, "origin": None}

    def __repr__(self) -> str:
        objective = "no point" if self.objective is None else f"objective {self.objective:.8g}"
        bound = "" if self.bound is None else f", bound {self.bound:.8g} ({self.bound_kind.value})"
        return (
            f"<Result: {self.status.value} ({self.stop_reason.value}), {objective}{bound}, "
            f"{self.iterations} iterations of {self.method}, {self.seconds:.2f} s>"
        )

    def to_json(self) -> str:
        """The whole result as JSON text; `from_json` reads it back."""
        record: dict[str, Any] = {
            "format": 1,
            "status": self.status.value,
            "stop_reason": self.stop_reason.value,
            "bound_kind": self.bound_kind.value,
            "objective": self.objective,
            "bound": self.bound,
            "x": None if self.x is None else self.x.tolist(),
            "violation": None if self.violation is None else asdict(self.violation),
            "residual": self.residual,
            "multipliers": None if self.multipliers is None else _listed(self.multipliers),
            "iterations": self.iterations,
            "seconds": self.seconds,
            "trace": [asdict(row) for row in self.trace],
            "method": self.method,
            "message": self.message,
            "profile": asdict(self.profile),
            "names": self.names,
            "outside": [asdict(where) for where in self.outside],
        }
        return json.dumps(_sayable(record), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Result:
        """A result from what `to_json` wrote."""
        try:
            record = json.loads(text, parse_constant=float)
            if record["format"] != 1:
                raise OptionError(f"result format {record['format']} is not known; expected 1.")
            return cls(
                status=Status(record["status"]),
                stop_reason=StopReason(record["stop_reason"]),
                objective=_number(record["objective"]),
                bound=_number(record["bound"]),
                bound_kind=BoundKind(record["bound_kind"]),
                x=None if record["x"] is None else np.array(record["x"], dtype=np.float64),
                violation=_violation(record["violation"]),
                residual=_number(record["residual"]),
                multipliers=_multipliers(record["multipliers"]),
                iterations=int(record["iterations"]),
                seconds=float(record["seconds"]),
                trace=Trace([_row(row) for row in record["trace"]]),
                method=str(record["method"]),
                message=str(record["message"]),
                profile=Profile(**record["profile"]),
                names=None if record["names"] is None else tuple(record["names"]),
                outside=tuple(Outside(**where) for where in record.get("outside", ())),
            )
        except (KeyError, TypeError, ValueError) as reason:
            if isinstance(reason, OptionError):
                raise
            raise OptionError(f"this is not a result written by to_json ({reason!r}).") from reason

    def report(self, path: str | Path) -> Path:
        """Write the result as one self-contained HTML page."""
        path = Path(path)
        path.write_text(page.document(self), encoding="utf-8")
        return path

    def _repr_html_(self) -> str:
        return page.summary(self)


def _sayable(value: Any) -> Any:
    """JSON has no NaN, no infinity and no numpy: the first two are written as text."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if np.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {key: _sayable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_sayable(item) for item in value]
    return value


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _listed(multipliers: Multipliers) -> dict[str, Any]:
    return {
        "inputs": {name: array.tolist() for name, array in multipliers.inputs.items()},
        "outputs": {name: array.tolist() for name, array in multipliers.outputs.items()},
        "rho": multipliers.rho,
    }


def _multipliers(record: Any) -> Multipliers | None:
    if record is None:
        return None
    inputs = {name: np.array(rows, dtype=np.float64) for name, rows in record["inputs"].items()}
    outputs = {name: np.array(rows, dtype=np.float64) for name, rows in record["outputs"].items()}
    return Multipliers(inputs, outputs, float(record["rho"]))


def _violation(record: Any) -> Violation | None:
    if record is None:
        return None
    return Violation(**{kind: Worst(float(worst["amount"]), worst["name"]) for kind, worst in record.items()})


_ROW_NUMBERS = (
    "objective", "incumbent", "rho", "lagrangian", "merit",
    "mip_seconds", "nn_seconds", "door_seconds", "elapsed",
)  # fmt: skip


def _row(record: dict[str, Any]) -> Row:
    numbers = {name: float(record[name]) for name in _ROW_NUMBERS}
    residuals = tuple(
        Residual(r["block"], r["kind"], float(r["primal"]), float(r["dual"])) for r in record["residuals"]
    )
    return Row(**{**record, **numbers, "residuals": residuals})

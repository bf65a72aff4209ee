"""What a solve returns."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np

from dovetail.certificates.certificate import Certificate
from dovetail.core.arrays import FloatArray, resolve
from dovetail.core.check import Violation, Worst
from dovetail.core.errors import DovetailError, OptionError
from dovetail.core.extrapolation import Extrapolation
from dovetail.core.file_writing import write_file
from dovetail.core.foreign import Origin
from dovetail.report import html
from dovetail.run.budget import StopReason
from dovetail.run.stopwatch import Profile
from dovetail.run.trace import Residual, Row, Trace
from dovetail.run.written_model import ModelEnd, WrittenModel

LONGEST_REASON = 200
"""Characters of a reason that a message repeats: it may quote a whole file."""


class Status(StrEnum):
    """What is known about the problem and the point.

    >>> import dovetail as dt
    >>> mip = dt.Mip(cost=[1.0], A=[[1.0]], row_lower=2.0, row_upper=9.0, upper=1.0)
    >>> result = dt.solve(dt.Problem(mip), log=False)
    >>> result.status == "infeasible", result.status is dt.Status.INFEASIBLE
    (True, True)
    """

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
    """The prices the couplings ended with, by block: what a later solve can start from.

    >>> import dovetail as dt
    >>> problem = dt.Problem(dt.Mip(cost=[0.0, 1.0], lower=0.0, upper=[3.0, 9.0]))
    >>> block = problem.add_predictor(lambda X: (X - 1.0) ** 2, inputs=[0], outputs=[1])
    >>> first = dt.solve(problem, dt.DualDecomposition(iterations=5), log=False)
    >>> first.multipliers.inputs["block0"].shape
    (1, 1)
    >>> second = dt.solve(problem, dt.DualDecomposition(iterations=5), start=first, log=False)
    """

    inputs: Mapping[str, FloatArray]
    outputs: Mapping[str, FloatArray]
    rho: float
    """The penalty they were found with; a later solve begins with its own."""


@dataclass(frozen=True, eq=False)
class Result:
    """The answer of `dovetail.solve`. Objective, bound and gap are in the user's sense.

    >>> import dovetail as dt
    >>> problem = dt.Problem(dt.Mip(cost=[1.0, -1.0], upper=[3.0, 9.0], integer=[True, False]))
    >>> block = problem.add_predictor(lambda X: X**2, inputs=[0], outputs=[1])
    >>> result = dt.solve(problem, log=False)
    >>> result.status.value, result.objective, round(result.bound, 6), result.x.tolist()
    ('optimal', -6.0, -6.0, [3.0, 9.0])
    >>> dt.Result.from_json(result.to_json()).value([1, 0])
    array([9., 3.])
    """

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
    engine: str = ""
    """What solved the MIP steps, by name; "" for none or several."""
    names: Sequence[str] | None = None
    extrapolations: tuple[Extrapolation, ...] = ()
    """Inputs beyond what their predictor was trained on, the farthest first; needs `data=`."""
    written: WrittenModel | None = None
    """What became of the model that "big-m" wrote; None for methods that write none."""
    origin: Origin | None = field(default=None, repr=False)
    """The foreign model that was solved, if it was one; a result read from a file has none."""
    certifying: Callable[[], Certificate | None] | None = field(default=None, repr=False)
    """What makes the certificate when it is asked for; a result read from a file has none."""

    @property
    def gap(self) -> float | None:
        """|objective - bound| / |objective|, or None without both; 0 where both are 0."""
        if self.objective is None or self.bound is None:
            return None
        apart = abs(self.objective - self.bound)
        return 0.0 if apart == 0.0 else apart / max(abs(self.objective), 1e-12)

    @cached_property
    def certificate(self) -> Certificate | None:
        """What the bound rests on, for `dovetail.check` to look at again; made when it is first asked for.

        It may prove less than `bound`, and says so; it is None where nothing can be written down (a network
        that is not known operation by operation, say, or more than 100 MB). Making one takes about as long
        as the proof did, at most a minute.
        """
        return None if self.certifying is None else self.certifying()

    def value(self, columns: Any) -> Any:
        """Values of columns given by index, name, or as variables of the model that was solved.

        The values have the shape of what was given.
        """
        if self.x is None:
            raise DovetailError(f"there is no point to read: the status is {self.status.value}.")
        if self.origin is not None:
            return self.origin.value(columns, self.x)
        picked = self.x[resolve("value()", columns, self.x.size, lambda: self._index)]
        return float(picked) if np.ndim(picked) == 0 else picked

    @cached_property
    def _index(self) -> dict[str, int] | None:
        return None if self.names is None else {name: j for j, name in enumerate(self.names)}

    def __getstate__(self) -> dict[str, Any]:
        """All but the model that was solved: most tools' models cannot be pickled or copied."""
        return {**self.__dict__, "origin": None, "certifying": None}

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
            "engine": self.engine,
            "names": None if self.names is None else list(self.names),
            "outside": [asdict(where) for where in self.extrapolations],
            "written": None if self.written is None else asdict(self.written),
        }
        return json.dumps(_sayable(record), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Result:
        """A result from what `to_json` wrote."""
        if not isinstance(text, (str, bytes)):
            raise OptionError(f"from_json takes the text that to_json wrote, not {type(text).__name__}.")
        try:
            return _read(json.loads(text, parse_constant=float))
        except OptionError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as reason:
            said = f"{type(reason).__name__}: {reason}"[:LONGEST_REASON]
            raise OptionError(
                f"this is not a result written by to_json ({said}); write it again with Result.to_json()."
            ) from reason

    def report(self, path: str | Path) -> Path:
        """Write the result as one self-contained HTML page."""
        return write_file(path, html.document(self))

    def _repr_html_(self) -> str:
        return html.summary(self)


def _sayable(value: Any) -> Any:
    """JSON has no NaN, no infinity and no numpy: the first two are written as text."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if np.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {key: _sayable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        kinds = set(map(type, value))  # a million numbers or names that can all be said are not gone through
        if kinds == {str} or (kinds == {float} and all(map(math.isfinite, value))):
            return value
        return [_sayable(item) for item in value]
    return value


# Reading back: a file may have been cut, edited or made up, so every part is looked at


def _read(record: Any) -> Result:
    _require("the whole", record, dict)
    if _require("format", record["format"], int) != 1:
        raise OptionError(f"result format {record['format']!r} is not known; expected 1.")
    x = None if record["x"] is None else _array("x", record["x"])
    names = None if record["names"] is None else tuple(_texts("names", record["names"]))
    if x is not None and (x.ndim != 1 or not np.all(np.isfinite(x))):
        raise ValueError("x is no vector of finite numbers")
    if x is not None and names is not None and x.size != len(names):
        raise ValueError(f"x has {x.size} entries and names has {len(names)}")
    return Result(
        status=Status(record["status"]),
        stop_reason=StopReason(record["stop_reason"]),
        objective=_number("objective", record["objective"], optional=True),
        bound=_number("bound", record["bound"], optional=True),
        bound_kind=BoundKind(record["bound_kind"]),
        x=x,
        violation=_violation(record["violation"]),
        residual=_number("residual", record["residual"], optional=True),
        multipliers=_multipliers(record["multipliers"]),
        iterations=_require("iterations", record["iterations"], int),
        seconds=_number("seconds", record["seconds"]),
        trace=Trace([_row(row) for row in _require("trace", record["trace"], list)]),
        method=_require("method", record["method"], str),
        message=_require("message", record["message"], str),
        profile=Profile(**{k: _number(f"profile.{k}", v) for k, v in record["profile"].items()}),
        engine=_require("engine", record.get("engine", ""), str),
        names=names,
        extrapolations=tuple(_extrapolation(where) for where in record.get("outside", ())),
        written=_written(record.get("written")),
    )


def _require(what: str, value: Any, kind: type) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{what} is {str(value)[:40]!r}, no {kind.__name__}")
    return value


@overload
def _number(what: str, value: Any) -> float: ...
@overload
def _number(what: str, value: Any, *, optional: bool) -> float | None: ...
def _number(what: str, value: Any, *, optional: bool = False) -> float | None:
    """A number; those JSON cannot say were written as words."""
    if value is None and optional:
        return None
    if isinstance(value, bool) or not (isinstance(value, (int, float)) or value in ("nan", "inf", "-inf")):
        raise ValueError(f"{what} is {str(value)[:40]!r}, no number")
    return float(value)


def _array(what: str, value: Any) -> FloatArray:
    """Numbers in lists of lists of equal length."""
    array = np.array(_require(what, value, list))
    if array.dtype.kind not in "iuf":  # words, ragged lists, whole numbers beyond all floats
        told = np.array(value, dtype=object)
        array = np.vectorize(lambda item: _number(what, item), otypes=[np.float64])(told)
    return array.astype(np.float64)


def _texts(what: str, value: Any) -> list[str]:
    return [_require(what, item, str) for item in _require(what, value, list)]


def _extrapolation(record: Any) -> Extrapolation:
    numbers = {name: _number(name, record[name]) for name in ("value", "lower", "upper")}
    _require("block", record["block"], str)
    _require("feature", record["feature"], str)
    _require("sample", record["sample"], int)
    return Extrapolation(**{**record, **numbers})


def _written(record: Any) -> WrittenModel | None:
    if record is None:
        return None
    numbers = {name: _number(name, record[name], optional=True) for name in ("solving_seconds", "memory_gb")}
    for name, kind in (("variables", int), ("constraints", int), ("said", str)):
        if record[name] is not None:
            _require(name, record[name], kind)
    seconds = _number("writing_seconds", record["writing_seconds"])
    return WrittenModel(**{**record, **numbers, "end": ModelEnd(record["end"]), "writing_seconds": seconds})


def _listed(multipliers: Multipliers) -> dict[str, Any]:
    return {
        "inputs": {name: array.tolist() for name, array in multipliers.inputs.items()},
        "outputs": {name: array.tolist() for name, array in multipliers.outputs.items()},
        "rho": multipliers.rho,
    }


def _multipliers(record: Any) -> Multipliers | None:
    if record is None:
        return None
    inputs = {name: _array(f"multipliers of {name}", rows) for name, rows in record["inputs"].items()}
    outputs = {name: _array(f"multipliers of {name}", rows) for name, rows in record["outputs"].items()}
    return Multipliers(inputs, outputs, _number("rho", record["rho"]))


def _violation(record: Any) -> Violation | None:
    if record is None:
        return None
    for kind in ("rows", "bounds", "integrality", "prediction"):
        _require(f"violation.{kind}", record[kind], dict)
    kinds = {
        kind: Worst(_number(f"violation.{kind}", worst["amount"]), _require(kind, worst["name"], str))
        for kind, worst in record.items()
    }
    return Violation(**kinds)


_ROW_NUMBERS = (
    "objective", "incumbent", "rho", "lagrangian", "merit",
    "mip_seconds", "nn_seconds", "check_seconds", "elapsed",
)  # fmt: skip


def _row(record: Any) -> Row:
    numbers = {name: _number(name, record[name]) for name in _ROW_NUMBERS}
    residuals = tuple(_residual(residual) for residual in _require("residuals", record["residuals"], list))
    _require("iteration", record["iteration"], int)
    _require("source", record["source"], str)
    _require("proof", record["proof"], str)
    _require("exact", record["exact"], bool)
    bound = _number("bound", record["bound"], optional=True)
    return Row(**{**record, **numbers, "bound": bound, "residuals": residuals})


def _residual(record: Any) -> Residual:
    block, kind = _require("block", record["block"], str), _require("kind", record["kind"], str)
    return Residual(block, kind, _number("primal", record["primal"]), _number("dual", record["dual"]))

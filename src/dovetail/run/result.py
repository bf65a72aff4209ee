"""The result of a solve.

For a method that writes the whole problem into one model, the result also has the record of that model.
Building the model may take longer than solving it, and either step may run out of time or memory;
comparisons of methods must tell these cases apart.
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from enum import StrEnum
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np

from dovetail.certificates.certificate import Certificate
from dovetail.core.arrays import FloatArray, resolve
from dovetail.core.check import Violation
from dovetail.core.conflict import Conflict
from dovetail.core.errors import DovetailError, OptionError
from dovetail.core.extrapolation import Extrapolation
from dovetail.core.foreign import Answer, Origin, RaggedError, as_array, like
from dovetail.core.names import NumberedNames, in_short, split_index
from dovetail.core.words import did_you_mean, facts, several
from dovetail.report.gains import ROWS_ONLY, relative_gap
from dovetail.run.budget import StopReason
from dovetail.run.constraints import ConstraintTable, FollowUp, WhatIf
from dovetail.run.environment import cores
from dovetail.run.failures import Failure
from dovetail.run.problem_facts import ProblemFacts
from dovetail.run.record import read, sayable, unreadable
from dovetail.run.second_opinion import SecondOpinion
from dovetail.run.trace import Row, Trace
from dovetail.run.work import Profile, Work
from dovetail.version import __version__


class ModelEnd(StrEnum):
    """How building and solving the model ended."""

    PROVED = "proved"
    """The solver says optimal, and the verified objective meets its bound."""
    TIME = "time"
    """The solver searched until the time limit."""
    WRITING = "writing"
    """The time limit, or a request to stop, came before the model was written."""
    MEMORY = "memory"
    """Out of memory: while the model was written if the solver never began, otherwise while the solver
    searched."""
    INFEASIBLE = "infeasible"
    """The solver reports that its model is infeasible. This is no proof, because the model approximates the
    problem."""
    OTHER = "other"
    """Optimal by the solver's word only, unbounded, interrupted."""


@dataclass(frozen=True)
class WrittenModel:
    """Seconds, memory and size of a model, and how it ended."""

    end: ModelEnd
    writing_seconds: float
    solving_seconds: float | None = None
    """Seconds of the solver without checks of its points; None if it never began."""
    memory_gb: float | None = None
    """The largest memory of this process during the solve, including what was used before; None if the system
    does not report it."""
    variables: int | None = None
    """Number of variables; None if the model was not finished."""
    constraints: int | None = None
    said: str | None = None
    """The solver's last status; None if it never began or did not end when asked to."""


LIBRARIES = ("numpy", "scipy", "torch", "highspy", "piqp", "pyscipopt")
"""Libraries whose arithmetic may matter to a result; the last one only if installed."""


@dataclass(frozen=True)
class Settings:
    """The call of one solve as a line of Python, and the machine."""

    method: str
    """The method as a line of Python, without defaults."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """All options of the method, with defaults."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The options of `dovetail.solve` that influence the result."""
    versions: Mapping[str, str] = field(default_factory=dict)
    machine: str = ""
    """The kind of machine; no names."""

    @classmethod
    def of(cls, method: object, options: Mapping[str, object]) -> Settings:
        """The settings of a call made now."""
        said = {name: _as_code(value) for name, value in options.items()}
        machine = f"{platform.machine()}, {platform.system()}, {cores()} cores"
        return cls(_call(method), _options_of(method), said, _versions(), machine)

    @property
    def call(self) -> str:
        """The call as a line of Python."""
        arguments = [self.method, *(f"{name}={value}" for name, value in self.options.items())]
        return f"dt.solve(problem, {', '.join(arguments)})"


def _options_of(method: object) -> dict[str, str]:
    return {part.name: _as_code(getattr(method, part.name)) for part in _parts(method)}


def _call(method: object) -> str:
    """The call that makes the object, without options at their defaults."""
    default = {
        part.name: part.default if part.default_factory is MISSING else part.default_factory()
        for part in _parts(method)
    }
    said = [
        f"{name}={value}" for name, value in _options_of(method).items() if value != _as_code(default[name])
    ]
    kind = type(method)
    ours = "dt." if kind.__module__.startswith("dovetail.") else ""
    return f"{ours}{kind.__name__}({', '.join(said)})"


def _parts(method: object) -> tuple[Field[Any], ...]:
    return fields(method) if is_dataclass(method) else ()


def _as_code(value: object) -> str:
    """The value as Python code, without addresses, which differ from run to run."""
    if is_dataclass(value) and type(value).__module__.startswith("dovetail."):
        return _call(value)
    return "..." if value is ... else re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


@cache
def _versions() -> dict[str, str]:
    found = {"dovetail": __version__, "python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


NAMES_IN_FILES = {"extrapolations": "outside"}
"""Fields with another name in a file."""
TIMES = ("incumbents", "bounds", "turns")
"""Parts of the trace that are separate lists in a file; earlier versions wrote none of the last."""
APART = ("trace", "facts", "origin", "certifying", "follow_up", "alternatives")
"""Fields that are written in another form, or not at all."""
IN_ONE_LINE, IN_A_TABLE = 3, 20
"""Number of values in the one-line form and in the table of a result; `values` has all."""


class Status(StrEnum):
    """What is known about the problem and the solution (docs/claims.md).

    >>> import dovetail as dt
    >>> mip = dt.Mip(cost=[1.0], A=[[1.0]], row_lower=2.0, row_upper=9.0, upper=1.0)
    >>> result = dt.solve(dt.Problem(mip), log=False)
    >>> result.status == "infeasible", result.status is dt.Status.INFEASIBLE
    (True, True)
    """

    OPTIMAL = "optimal"
    """A bound meets the objective within the requested gap, 1e-4 by default."""
    FEASIBLE = "feasible"
    """The solution is verified; a better one may exist."""
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    NO_SOLUTION = "no_solution"
    """No candidate passed the check; nothing is proved."""
    ERROR = "error"


class BoundKind(StrEnum):
    """The support of a bound."""

    PROVEN = "proven"
    """Proved by our own arithmetic."""
    ENGINE = "engine"
    """Reported by HiGHS or SCIP, less tolerances; the search tree was not repeated."""
    ESTIMATE = "estimate"
    """Estimated from a sample of many blocks (`bound_error`); nothing is proved."""
    NONE = "none"


@dataclass(frozen=True, eq=False)
class Multipliers:
    """The prices that Algorithm 1 ended with, by block. A later solve can start from them.

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
    """The penalty at the end; a later solve begins with this value."""


@dataclass(frozen=True, eq=False)
class Result:
    """The result of `dovetail.solve`: status, solution, objective, bound, and how they were found.

    Objective, bound and gap have the sign and units of your objective.

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
    """The engine of the MIP steps; "" for none or several."""
    names: Sequence[str] | None = None
    extrapolations: tuple[Extrapolation, ...] = ()
    """Inputs outside the range of their training data, the farthest first; needs `data=`."""
    source: str = ""
    """The source of the solution.

    | source | words |
    | --- | --- |
    | `start` | the start that was given |
    | `host` | the MIP without predictors, outputs computed afterwards |
    | `concurrent` | a concurrent solve with another seed |
    | `x` | the method's own iterate |
    | `u` | the networks' copies, rounded |
    | `probe` | a probe around the middle of the boxes |
    | `cheapest` | a descent from the best point of the LP without predictors |
    | `least-activity` | a descent from the point with the least activity |
    | `random` | a descent from a random start |
    | `near` | a descent from near the incumbent |
    | `relaxed` | a descent with the integers relaxed |
    | `rens` | a MIP over the integers that came out fractional |
    | `lns` | a large neighbourhood of the incumbent |
    | `switch` | moves of single integers |
    | `beside` | a descent over the other variables, integers fixed |
    | `greedy` | a greedy choice of columns |
    | `master` | a MIP over the columns |
    | `polish` | a descent from the chosen columns |
    | `templates` | one priced column for each block |
    | `nodes` | a node of branch and bound |
    | `cells` | a descent over cells of trees |
    | `exact` | the exact MIP |
    | `tables` | the exact MIP of tables |
    | `splits` | the exact MIP of the trees' splits |
    | `quadratic` | a MIP with quadratic curves |
    | `scip` | SCIP |
    """
    bound_source: str = ""
    """The source of the bound.

    | source | words |
    | --- | --- |
    | `host` | MIP only, predictors ignored |
    | `box` | variable bounds only, predictors ignored |
    | `nodes` | branch and bound over variables, neurons and thresholds of trees |
    | `planes` | an LP with planes of the networks on cells |
    | `prices` | prices on shared constraints, each block bounded |
    | `tightening` | bound tightening: no better solution exists |
    | `tangents` | tangents of quadratic functions |
    | `columns` | boxes of cells of trees as columns |
    | `concurrent` | a concurrent solve |
    | `exact` | the exact MIP |
    | `tables` | the exact MIP of tables |
    | `splits` | the exact MIP of the trees' splits |
    | `scip` | SCIP |
    """
    bound_error: float | None = None
    """One standard error of a bound that is an estimate."""
    allowed_gap: float | None = None
    """How far the bound may be from the objective of an optimal solution: the gap that was asked for, plus
    the part that the rounding of predictors explains."""
    evaluations: int = 0
    """Samples evaluated by predictors and their copies; other processes are not counted."""
    work: Work = field(default_factory=Work)
    """Nodes of search trees and linear programs; other processes are not counted."""
    conflict: Conflict | None = None
    """What contradicts each other, for the status infeasible, if there was time to find out."""
    hints: tuple[str, ...] = ()
    """Suggestions that follow from the run, the most promising first."""
    failures: tuple[Failure, ...] = ()
    """Parts of dovetail that failed while the solve continued; the message names them, too."""
    written: WrittenModel | None = None
    """The model that "big-m" wrote; None for other methods."""
    facts: ProblemFacts | None = field(default=None, repr=False)
    """Facts about the problem, for the page."""
    settings: Settings | None = field(default=None, repr=False)
    """How to repeat the solve."""
    origin: Origin | None = field(default=None, repr=False)
    """The model of another tool that was solved; None for others and for results read from a file."""
    certifying: Callable[[], Certificate | None] | None = field(default=None, repr=False)
    """Makes the certificate on request; None for results read from a file."""
    alternatives: tuple[Result, ...] = ()
    """Other solutions, each the best that was found to differ from those before (docs/several.md)."""
    follow_up: FollowUp | None = field(default=None, repr=False)
    """Answers questions about the problem; None for results read from a file."""

    @property
    def gap(self) -> float | None:
        """|objective - bound| / |objective|, or None without both; 0 where both are 0."""
        if self.objective is None or self.bound is None:
            return None
        return relative_gap(self.objective, self.bound)

    @property
    def rows_only(self) -> bool:
        """Whether the bound ignores the predictors (`MIP only` in the log) and no solution attains it.

        Such a bound gives no information about the quality of the solution, so no gap is shown.
        """
        no_network = self.facts is not None and not self.facts.blocks
        return self.bound_source in ROWS_ONLY and self.status is not Status.OPTIMAL and not no_network

    @cached_property
    def certificate(self) -> Certificate | None:
        """What the bound is based on, for `dovetail.check` to verify; made on first access, which may take a
        minute.

        The certificate may prove a weaker bound than `bound`; its own bound is stated in it. It is None if
        the operations of a network are not known, or above 100 MB.
        """
        return None if self.certifying is None else self.certifying()

    @property
    def solutions(self) -> tuple[Result, ...]:
        """This solution and the `alternatives`."""
        return (self, *self.alternatives)

    @property
    def constraints(self) -> Any:
        """The constraints by name: activity, limits, slack, whether binding, and the price: by how much the
        objective changes per unit of the limit (docs/prices.md). A DataFrame if pandas is installed,
        otherwise a `ConstraintTable`."""
        table = self.constraint_table
        return table.to_frame() if find_spec("pandas") else table

    @cached_property
    def constraint_table(self) -> ConstraintTable:
        """The same as a `ConstraintTable`, whether pandas is installed or not; made on first access."""
        if self._point is not None and self.follow_up is not None:
            table = self.follow_up.constraints()
            if table is not None:
                if self.origin is not None and self.origin.reading.helper_rows:
                    table = table.without(self.origin.reading.helper_rows)
                return table if self.status is Status.OPTIMAL else table.as_local()
        nothing = np.empty(0)
        return ConstraintTable((), nothing, nothing, nothing, nothing, (), nothing)

    def what_if(self, changes: Mapping[str, Any], **options: Any) -> WhatIf:
        """Solve again with other limits, from this solution, with the same method and options.

        `changes` has a shift for each name of a constraint or variable: a number, or one for the lower and
        one for the upper limit. `options` are those of `dovetail.solve`. The model stays as it is.
        """
        if self.follow_up is None:
            raise DovetailError("what_if needs the problem: this result was read from a file.")
        if not isinstance(changes, Mapping) or not changes:
            raise OptionError(
                f'what_if takes names with shifts, for example {{"budget": 10}}, not {changes!r}.'
            )
        result, estimate = self.follow_up.solved_again(self, changes, options)
        return WhatIf(dict(changes), self, result, estimate)

    def second_opinion(
        self,
        predictors: Any = None,
        data: Any = None,
        *,
        refits: int = 20,
        refit: Callable[[Any, Any], Any] | None = None,
        against: Any = None,
        seed: int = 0,
    ) -> SecondOpinion:
        """The decision as other models see it: what was promised, and what remains (docs/trust.md).

        Args:
            predictors: Other models of the same quantity; by name of the predictor if there are several.
            data: Instead, training data (X, y); the predictor is trained again on bootstrap samples.
            refits: The number of bootstrap samples.
            refit: A function (X, y) -> a trained predictor, for predictors without fit.
            against: A reference decision (a result, or a value for each variable); gains are measured from
                it.
            seed: Of the bootstrap samples.
        """
        if self.follow_up is None:
            raise DovetailError("second_opinion needs the problem: this result was read from a file.")
        asked = {
            "predictors": predictors, "data": data, "refits": refits, "refit": refit, "against": against,
            "seed": seed,
        }  # fmt: skip
        return self.follow_up.second_opinion(self._point, asked)

    def value(self, columns: Any) -> Any:
        """Values of variables, given by index, by name, or as variables of the model that was solved.

        The answer has the form of the question: a number for one variable, otherwise an array of the same
        shape, a frame, a series or a `DataArray` with its labels, or a dictionary with its keys.
        """
        x = self._point
        if self.origin is not None:
            return self.origin.value(columns, x)
        keyed = isinstance(columns, dict) or hasattr(type(columns), "iloc")  # a frame of pandas
        try:
            held = as_array(columns, lambda item: item) if keyed else columns
        except RaggedError:
            return {key: self.value(item) for key, item in columns.items()}
        return like(columns, np.asarray(x[resolve("value()", held, x.size, lambda: self._index)]))

    @cached_property
    def values(self) -> Values:
        """All values by name; variables with indices also by family (docs/drop_in.md)."""
        return Values(self._point, self.names)

    def load(self) -> None:
        """Write the solution into the model that was solved, where the tool's own functions find it.

        Pyomo `.value`, linopy `.solution` and `objective.value`, highspy `val`, PySCIPOpt `getVal` and
        `getObjVal`, gurobipy `.X` and `ObjVal` (until the next `update()`); see docs/drop_in.md.
        Constraints, bounds and objective stay as they are. `dovetail.solve` calls this by default.
        """
        if self.origin is None:
            raise DovetailError(
                "there is no model to write into: the result is of a dovetail.Problem, or was read from a "
                "file; read it with result.values or result.value(...)."
            )
        assert self._point is not None
        self.origin.load(self.answer)

    @property
    def answer(self) -> Answer:
        """The solution as a model takes it."""
        return Answer(
            self.x, self.objective, self.status.value, self.stop_reason.value,
            lambda: self.constraint_table.prices,
        )  # fmt: skip

    @property
    def _point(self) -> FloatArray:
        if self.x is None:
            raise DovetailError(f"there is no solution to read: the status is {self.status.value}.")
        return self.x

    @cached_property
    def _index(self) -> dict[str, int] | None:
        return None if self.names is None else {name: j for j, name in enumerate(self.names)}

    def __getstate__(self) -> dict[str, Any]:
        """Everything except the model, because models of most tools cannot be pickled or copied."""
        return {**self.__dict__, "origin": None, "certifying": None, "follow_up": None}

    def __repr__(self) -> str:
        objective = (
            self._objective_in_words if self.objective is None else f"objective {self._objective_in_words}"
        )
        bound = "" if self.bound is None else f", bound {self.bound:.8g} ({self.bound_kind.value})"
        work = f"{several(self.iterations, 'iteration')} of {self.method}, {self.seconds:.2f} s"
        return (
            f"<Result: {self.status.value} ({self.stop_reason.value}), {objective}{bound}, {work}"
            f"{'' if self.x is None else '; ' + self.values.in_short(IN_ONE_LINE)}>"
        )

    @property
    def _objective_in_words(self) -> str:
        """The objective in words; the solution of an unbounded problem has none."""
        if self.objective is not None:
            return f"{self.objective:.8g}"
        return "no solution" if self.x is None else "without limit"

    def to_json(self) -> str:
        """The whole result as JSON; `from_json` reads it back."""
        names = [part.name for part in fields(self) if part.name not in APART]
        record = {"format": 1, **{NAMES_IN_FILES.get(name, name): getattr(self, name) for name in names}}
        record |= {"trace": self.trace.rows}
        record |= {name: getattr(self.trace, name) for name in TIMES}
        record["facts"] = None if self.facts is None else self.facts.to_record()
        record["constraints"] = None if self.x is None else self.constraint_table.to_record()
        record["alternatives"] = [json.loads(other.to_json()) for other in self.alternatives]
        return json.dumps(sayable(record), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Result:
        """Read a result that `to_json` wrote."""
        if not isinstance(text, (str, bytes)):
            raise OptionError(f"from_json takes the text that to_json wrote, not {type(text).__name__}.")
        try:
            return _read(json.loads(text, parse_constant=float))
        except OptionError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as reason:
            raise OptionError(unreadable(text, reason)) from reason

    def report(self, path: str | Path, *, second_opinion: SecondOpinion | None = None) -> Path:
        """Write the result, and a second opinion if given, as one self-contained HTML page (docs/page.md)."""
        from dovetail.report.page.result_page import write_page

        return write_page(self, Path(path), second_opinion)

    def plot(self, *, width: float = 8.0) -> Any:
        """Incumbent and bound over time, and residuals if there are any, as a matplotlib figure.

        `width` is in inches. Needs matplotlib.
        """
        from dovetail.report.matplotlib_plot import course_figure

        return course_figure(self, width)

    def _repr_html_(self) -> str:
        bound = "none" if self.bound is None else f"{self.bound:.8g} ({self.bound_kind.value})"
        gap = "" if self.gap is None else f", gap {100 * self.gap:.3g} %"
        rows = [
            ("objective", self._objective_in_words),
            ("bound", f"{bound}{', MIP only' if self.rows_only else gap}"),
            ("stopped", f"{self.stop_reason.value}, after {self.seconds:.2f} s of {self.method}"),
            ("means", self.message),
        ]
        if self.violation is not None:
            rows.append(("check", repr(self.violation).strip("<>")))
        if self.x is None:
            return facts(self.status.value, rows)
        shown, rest = self.values.shown(IN_A_TABLE)
        return facts(self.status.value, rows) + facts(
            "the decision", [*shown, *([("...", rest)] if rest else [])]
        )


def _read(record: Any) -> Result:
    if read("format", record["format"], int) != 1:
        raise OptionError(f"result format {record['format']!r} is not known; expected 1.")
    kinds = get_type_hints(Result)
    names = {part.name: NAMES_IN_FILES.get(part.name, part.name) for part in fields(Result)}
    given = {
        name: read(key, record[key], kinds[name])
        for name, key in names.items()
        if name not in APART and (key in record or name in ("profile", "names"))
    }
    x, columns = given["x"], given["names"]
    if x is not None and (x.ndim != 1 or not np.all(np.isfinite(x))):
        raise ValueError("x is no vector of finite numbers")
    if x is not None and columns is not None and x.size != len(columns):
        raise ValueError(f"x has {x.size} entries and names has {len(columns)}")
    for name in ("allowed_gap", "bound_error"):
        if given.get(name) is not None and not given[name] >= 0.0:
            raise ValueError(f"{name} is {given[name]}, less than 0")
    times = {name: read(name, record.get(name, []), get_type_hints(Trace)[name]) for name in TIMES}
    trace = Trace(read("trace", record["trace"], list[Row]), **times)
    facts = ProblemFacts.from_record(record.get("facts"), None if x is None else x.size)
    told = read("alternatives", record.get("alternatives", []), list[dict])  # type: ignore[type-arg]
    others = tuple(map(_read, told))
    found = Result(**given, trace=trace, facts=facts, alternatives=others)
    constraints = ConstraintTable.from_record(record.get("constraints"))
    if constraints is not None:
        found.__dict__["constraint_table"] = constraints  # computed by the solve
    return found


SHOWN = 8
"""Number of values shown in a short form."""


class Values(Mapping[str, Any]):
    """Values by name: variables by their names, families by the part before the indices.

    >>> import numpy as np
    >>> values = Values(np.array([1.0, 2.0, 3.0]), ["x[0,a]", "x[1,a]", "cost"])
    >>> values["cost"], values["x[1,a]"], values["x"]
    (3.0, 2.0, {(0, 'a'): 1.0, (1, 'a'): 2.0})
    >>> dict(values)
    {'x[0,a]': 1.0, 'x[1,a]': 2.0, 'cost': 3.0}
    """

    def __init__(self, x: FloatArray, names: Sequence[str] | None) -> None:
        self._x = x
        self._names = names

    def __len__(self) -> int:
        return int(self._x.size)

    def __iter__(self) -> Iterator[str]:
        """The names of all variables in order; without names x[0], x[1], ..."""
        return iter(self._names) if self._names is not None else (f"x[{j}]" for j in range(len(self)))

    def __getitem__(self, name: str) -> Any:
        if name in self._index:
            return float(self._x[self._index[name]])
        if name in self.families:
            return self.families[name]
        known = [*self.families, *self._index]
        raise KeyError(f"there is no variable and no family called {name!r}{did_you_mean(name, known)}")

    def __contains__(self, name: object) -> bool:
        return name in self._index or name in self.families

    @cached_property
    def families(self) -> dict[str, dict[Any, float]]:
        """Variables that differ in indices only: by the common part of the name, then by index."""
        found: dict[str, dict[Any, float]] = {}
        for name, value in zip(self, self._x.tolist(), strict=True):
            label, index = split_index(name)
            if index:
                found.setdefault(label, {})[index if len(index) > 1 else index[0]] = value
        return found

    @cached_property
    def _index(self) -> dict[str, int]:
        return {name: j for j, name in enumerate(self)}

    def __repr__(self) -> str:
        return f"<Values: {self.in_short()}>"

    def in_short(self, most: int = SHOWN) -> str:
        """The first few values in one line."""
        shown, rest = self.shown(most)
        return ", ".join([*(f"{in_short(name)} = {value}" for name, value in shown), rest]).rstrip(", ")

    def shown(self, most: int = SHOWN) -> tuple[list[tuple[str, str]], str]:
        """Names and values of the first few variables that are not 0, and the number of the others."""
        places = np.flatnonzero(self._x)
        names = self._names or NumberedNames("x", (len(self),))
        shown = [(names[j], f"{self._x[j]:.6g}") for j in places[:most].tolist()]
        others = {"more": len(places) - len(shown), "at 0": len(self) - len(places)}
        return shown, ", ".join(f"{count} {word}" for word, count in others.items() if count)

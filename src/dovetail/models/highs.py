"""Models that HiGHS holds (`highspy.Highs` objects), or reads in a file."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import highspy
import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import ModelError
from dovetail.core.files import Meter
from dovetail.core.foreign import Answer, ForeignModel, Reading, Ties
from dovetail.core.mip import Mip
from dovetail.core.names import distinct
from dovetail.core.quadratic import QuadraticTerms
from dovetail.models.tool_model import ask_first


class HighsModel(ForeignModel):
    """A `highspy.Highs`; its variables are `highs_var` objects, or names."""

    tool = "highspy model"
    source = "what its addVariable gave you, or the name of a variable"
    heavy = (highspy.HighspyArray,)

    def read(self, *, rows: bool = True) -> Reading:
        """The program; columns are identified by their index."""
        mip = as_mip(self._model, rows=rows, quadratic=True)
        quadratics = _quadratics(self._model) if rows else ()
        return Reading(mip, tuple(range(mip.n_columns)), quadratics=quadratics)

    def key(self, variable: Any) -> Hashable:
        """The current index of the column."""
        if isinstance(variable, str):
            status, place = self._model.getColByName(variable)
            if status == highspy.HighsStatus.kOk:
                return int(place)
        elif isinstance(variable, highspy.highs.highs_var) and _holder(variable) is self._model:
            return int(variable.index)
        raise self.no_variable(variable)

    def watch(self, ties: Ties) -> None:
        """Wrap the methods that solve: all end in `run` of the class above, some after changing the
        objective."""

        def ask(model: Any, *args: Any, **options: Any) -> None:
            try:
                ties.refuse((model,))
            except ModelError as refusal:
                raise ModelError(
                    f"{refusal} highspy's minimize and maximize solve, too; setObjective(expression, sense) "
                    "states an objective without a solve."
                ) from None

        for owner in highspy.Highs.__mro__:
            ask_first(owner, ("run", "solve", "optimize", "startSolve", "minimize", "maximize"), ask)

    def moved(self, reading: Reading) -> bool:
        """Whether columns were deleted, so that later indices have changed."""
        return int(self._model.getNumCol()) < reading.mip.n_columns

    def create(self, shape: tuple[int, int], *, binary: bool, name: str) -> Any:
        """New columns, made as highspy does."""
        kind = highspy.HighsVarType.kInteger if binary else highspy.HighsVarType.kContinuous
        low, high = (0.0, 1.0) if binary else (-highspy.kHighsInf, highspy.kHighsInf)
        return self._model.addVariables(*shape, lb=low, ub=high, type=kind, name_prefix=f"{name}_")

    def discard(self, created: Any) -> None:
        """Delete the columns if they are the last ones; otherwise fix them at 0, so that other indices
        stay."""
        places = sorted((int(variable.index) for variable in created.ravel()), reverse=True)
        if places[-1] + len(places) == self._model.getNumCol():
            self._model.deleteVars(len(places), places[::-1])
            return
        for place in places:
            self._model.changeColBounds(place, 0.0, 0.0)
            self._model.changeColCost(place, 0.0)

    def held(self, reading: Reading) -> FloatArray:
        """The solution that HiGHS holds, of its last run or from `setSolution`."""
        solution = self._model.getSolution()
        values = np.full(len(reading.keys), np.nan)
        if solution.value_valid:
            known = np.asarray(solution.col_value)[: values.size]
            values[: known.size] = known
        return values

    def load(self, reading: Reading, answer: Answer) -> None:
        """Make `val`, `getSolution` and the like return the solution; HiGHS computes objective and status
        only in a run."""
        if answer.x is None:
            self._model.clearSolver()
            return
        values = np.zeros(self._model.getNumCol())  # columns that were added later are 0 and have no cost
        values[: reading.mip.n_columns] = answer.x[: reading.mip.n_columns]
        solution = highspy.HighsSolution()
        solution.col_value = values.tolist()
        if self._model.setSolution(solution) == highspy.HighsStatus.kError:
            raise ModelError("HiGHS does not take the solution; read it with result.value(variables).")


def _holder(variable: Any) -> Any:
    """The model behind the weak proxy that a variable holds; None if the model no longer exists."""
    try:
        return variable.highs.getLp.__self__
    except ReferenceError:
        return None


def _quadratics(highs: highspy.Highs) -> tuple[QuadraticTerms, ...]:
    """The objective's half x'Qx, of which HiGHS holds one triangle, or all."""
    if highs.getHessianNumNz() == 0:
        return ()
    hessian = highs.getModel().hessian_
    value, index, start = np.array(hessian.value_), np.array(hessian.index_), np.array(hessian.start_)
    Q = sp.csc_array((value, index, start), shape=(hessian.dim_, hessian.dim_)).tocoo()
    row, column = (place.astype(np.int64) for place in Q.coords)
    twice = (hessian.format_ == highspy.HessianFormat.kTriangular) & (row != column)
    return (QuadraticTerms(None, row, column, np.where(twice, 1.0, 0.5) * Q.data),)


def as_mip(
    highs: highspy.Highs, called: str = "the model", *, rows: bool = True, quadratic: bool = False
) -> Mip:
    """The program of a HiGHS object; a quadratic objective is refused unless the caller reads it."""
    if highs.getHessianNumNz() > 0 and not quadratic:
        raise ModelError(
            f"{called} has a quadratic objective, and a dovetail.Mip is linear. Read it with highspy "
            "(Highs.readModel) and hand that model to dovetail.solve, which takes it."
        )
    lp = highs.getLp()
    if lp.num_col_ == 0:
        raise ModelError(f"{called} has no variables; HiGHS reads a file without a model as an empty model.")
    integer = _integrality(lp, called)
    names = distinct(lp.col_names_)
    if not rows:
        return Mip(lp.col_cost_, lower=lp.col_lower_, upper=lp.col_upper_, integer=integer, names=names)
    matrix = lp.a_matrix_
    layout = sp.csr_array if matrix.format_ == highspy.MatrixFormat.kRowwise else sp.csc_array
    A = layout(
        (np.array(matrix.value_), np.array(matrix.index_), np.array(matrix.start_)),
        shape=(lp.num_row_, lp.num_col_),
    )
    return Mip(
        cost=lp.col_cost_,
        A=A,
        row_lower=lp.row_lower_,
        row_upper=lp.row_upper_,
        lower=lp.col_lower_,
        upper=lp.col_upper_,
        integer=integer,
        sense="max" if lp.sense_ == highspy.ObjSense.kMaximize else "min",
        offset=lp.offset_,
        names=names,
        row_names=distinct(lp.row_names_),
    )


def _integrality(lp: highspy.HighsLp, called: str) -> np.ndarray:
    kinds = list(lp.integrality_)  # the array is empty if all columns are continuous
    for j, kind in enumerate(kinds):
        if kind in (highspy.HighsVarType.kSemiContinuous, highspy.HighsVarType.kSemiInteger):
            name = lp.col_names_[j] if lp.col_names_ else f"x[{j}]"
            raise ModelError(
                f"{called}: {name} is semi-continuous, which is not supported; write it with a binary "
                "variable and two constraints."
            )
    if not kinds:
        return np.zeros(lp.num_col_, dtype=bool)
    return np.array([kind == highspy.HighsVarType.kInteger for kind in kinds])


def read_by_highs(path: Path, meter: Meter, *, free: bool = True) -> Mip:
    """The model that HiGHS reads from a plain file."""
    highs = highspy.Highs()  # type: ignore[no-untyped-call]
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("mps_parser_type_free", free)
    highs.setOptionValue("time_limit", max(meter.left, 1.0))
    # HiGHS only warns about some mistakes (a column in two places, an unknown marker) and then reads
    # another model than the one that was written
    status = highs.readModel(str(path))
    meter.require_time()
    if status != highspy.HighsStatus.kOk:
        raise ModelError(
            f"{meter.name} cannot be read as a linear program with integers: HiGHS refuses or doubts files "
            "with quadratic constraints, SOS or indicator constraints, ranges in .lp files, and mistakes."
        )
    return as_mip(highs, meter.name)

"""Models that HiGHS reads or holds: .mps, .mps.gz and .lp files."""

from __future__ import annotations

from pathlib import Path

import highspy
import numpy as np
import scipy.sparse as sp

from dovetail.core.errors import ModelError
from dovetail.core.mip import Mip

SUFFIXES = (".mps", ".mps.gz", ".lp")


def read(path: str | Path) -> Mip:
    """The linear program in an .mps, .mps.gz or .lp file."""
    try:
        path = Path(path)
    except TypeError:
        raise ModelError(f"read takes the path of a file, not {path!r}.") from None
    if not path.name.endswith(SUFFIXES):
        raise ModelError(f"{path.name}: the name must end in {', '.join(SUFFIXES)}.")
    if not path.is_file():
        raise ModelError(f"{path}: there is no such file.")
    highs = highspy.Highs()  # type: ignore[no-untyped-call]
    highs.setOptionValue("output_flag", False)
    # what HiGHS only warns about (a column in two places, a marker it does not understand) it reads as
    # another model than was written
    if highs.readModel(str(path)) != highspy.HighsStatus.kOk:
        raise ModelError(
            f"{path.name} cannot be read as a linear program with integers: HiGHS refuses or doubts files "
            "with quadratic rows, SOS or indicator constraints, ranges in .lp files, and mistakes."
        )
    return as_mip(highs, path.name)


def as_mip(highs: highspy.Highs, called: str = "the model") -> Mip:
    """The program a HiGHS object holds; the object is not changed."""
    if highs.getHessianNumNz() > 0:
        raise ModelError(
            f"{called} has a quadratic objective; dovetail's host is linear. Move the quadratic term into "
            "a predictor, or linearise it."
        )
    lp = highs.getLp()
    if lp.num_col_ == 0:
        raise ModelError(f"{called} has no columns; HiGHS reads text that is no model as an empty one.")
    integer = _integrality(lp, called)
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
        names=lp.col_names_ or None,
        row_names=lp.row_names_ or None,
    )


def _integrality(lp: highspy.HighsLp, called: str) -> np.ndarray:
    kinds = list(lp.integrality_)  # empty when everything is continuous
    for j, kind in enumerate(kinds):
        if kind in (highspy.HighsVarType.kSemiContinuous, highspy.HighsVarType.kSemiInteger):
            name = lp.col_names_[j] if lp.col_names_ else f"x[{j}]"
            raise ModelError(
                f"{called}: {name} is semi-continuous, which is not supported; write it with a binary "
                "column and two rows."
            )
    if not kinds:
        return np.zeros(lp.num_col_, dtype=bool)
    return np.array([kind == highspy.HighsVarType.kInteger for kind in kinds])

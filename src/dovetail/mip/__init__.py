"""MIP engines: loaded once, solved again whenever only the objective moves.

Which engine is best depends on what carries a weight in the objective; `choose`
follows measurements. All engines answer the same question, so that swapping one for
another is one argument.
"""

from __future__ import annotations

from dovetail.core.arrays import IntArray
from dovetail.core.errors import OptionError, UnsupportedError
from dovetail.core.mip import Mip
from dovetail.mip.highs import HighsEngine as HighsEngine
from dovetail.mip.piqp import PiqpEngine
from dovetail.mip.scip import ScipEngine
from dovetail.run.engine import MipEngine

ENGINES: dict[str, type[MipEngine]] = {
    "highs": HighsEngine,
    "piqp": PiqpEngine,
    "scip": ScipEngine,
}


def choose(mip: Mip, columns: IntArray) -> MipEngine:
    """The engine measured best for weights on `columns`: PIQP without integers, HiGHS with them."""
    for engine in (PiqpEngine(), HighsEngine()):
        if columns.size and engine.refuses(mip, columns) is None:
            return engine
    return HighsEngine()


def engine_for(name: str, mip: Mip, columns: IntArray) -> MipEngine:
    """The engine of that name, or the measured best for "auto"; an error if it cannot take the program."""
    if name == "auto":
        return choose(mip, columns)
    if name not in ENGINES:
        raise OptionError(f"engine {name!r} is not known; choose auto, {', '.join(ENGINES)}.")
    engine = ENGINES[name]()
    reason = engine.refuses(mip, columns)
    if reason is not None:
        raise UnsupportedError(f"engine {name!r} cannot take this problem: {reason}")
    return engine

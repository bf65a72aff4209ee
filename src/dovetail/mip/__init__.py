"""Engines of the MIP step: a program is loaded once and solved many times with other objectives.

All engines have the same interface, so that one can replace another. `choose` selects the one that
measurements found best for the weights in the objective.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dovetail.core.errors import UnsupportedError
from dovetail.core.options import require_choice, require_methods
from dovetail.core.table import Part, Table

if TYPE_CHECKING:  # this table is read by the command line: it must load neither numpy nor HiGHS
    from dovetail.core.arrays import IntArray
    from dovetail.core.mip import Mip
    from dovetail.run.engine import MipEngine

ENGINES: Table[MipEngine] = Table(
    "engine",
    "engines for the MIP step",
    Part(
        "highs",
        "dovetail.mip.highs:HighsEngine",
        "any problem; the default with integer variables",
        library="highspy",
    ),
    Part(
        "piqp", "dovetail.mip.piqp:PiqpEngine", "continuous problems; the default for these", library="piqp"
    ),
    Part("scip", "dovetail.mip.scip:ScipEngine", "any problem", library="pyscipopt", extra="scip"),
    otherwise="auto for the one measured best, or pass an engine object",
)


def register_engine(name: str, make: Callable[[], MipEngine], text: str = "") -> None:
    """Give your own engine a name: `DualDecomposition(engine=name)`.

    An engine object works without a name, `DualDecomposition(engine=MyEngine())`. `make` is the class, or a
    function that makes the engine; `text` describes the use of the engine in one line.
    `dovetail.run.engine` defines what an engine must do, and `dovetail.testing.EngineSuite` tests it.

    >>> import dovetail as dt
    >>> from dovetail.mip.highs import HighsEngine
    >>> class MyEngine(HighsEngine):
    ...     name = "mine"
    >>> dt.register_engine("mine", MyEngine, "any problem; needs a licence")
    >>> dt.DualDecomposition(engine="mine").engine
    'mine'
    """
    ENGINES.add(Part(name, make, text))


def choose(mip: Mip, columns: IntArray) -> MipEngine:
    """The engine measured best for weights on `columns`: PIQP without integers, HiGHS with them."""
    for name in ("piqp", "highs"):
        engine = ENGINES.make(name)
        if columns.size and engine.refuses(mip, columns) is None:
            return engine
    return ENGINES.make("highs")


def require_engine(what: str, engine: object) -> None:
    """Refuse anything that is neither the name of an engine nor an engine."""
    if isinstance(engine, str):
        require_choice(what, engine, ("auto", *ENGINES))
    else:
        require_methods(what, engine, ("refuses", "load"), "dovetail.mip.highs.HighsEngine(), or its name")


def engine_for(wanted: str | MipEngine, mip: Mip, columns: IntArray) -> MipEngine:
    """The requested engine, or the best one for "auto"; an error if it cannot take the program."""
    if wanted == "auto":
        return choose(mip, columns)
    engine = ENGINES.make(wanted) if isinstance(wanted, str) else wanted
    reason = engine.refuses(mip, columns)
    if reason is not None:
        raise UnsupportedError(f"engine {engine.name!r} cannot take this problem: {reason}")
    return engine

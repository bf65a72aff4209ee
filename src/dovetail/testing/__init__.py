"""The conformance suites, for parts of your own: if they pass, dovetail can rely on the part.

They are the suites that dovetail's own engines, sub-solvers, predictors and methods have to pass, written
for pytest. In your own test file, derive a class whose name begins with `Test` and name the tested part::

    from dovetail.testing import EngineSuite

    class TestMyEngine(EngineSuite):
        engine = MyEngine()

`EngineSuite`, `SubSolverSuite`, `PredictorSuite` (with a `PredictorCase` for each predictor) and
`MethodSuite` have an example each. The truth they compare with is found by enumeration or in closed form,
never by another engine. Importing this package imports neither pytest nor torch; using a suite does.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

_PUBLIC = {
    "EngineSuite": "dovetail.testing.engine_suite",
    "MethodSuite": "dovetail.testing.method_suite",
    "PredictorCase": "dovetail.testing.predictor_suite",
    "PredictorSuite": "dovetail.testing.predictor_suite",
    "SubSolverSuite": "dovetail.testing.sub_solver_suite",
}

__all__ = list(_PUBLIC)

if "pytest" in sys.modules:  # so that a failing suite shows the values it compared
    sys.modules["pytest"].register_assert_rewrite(*_PUBLIC.values())


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'dovetail.testing' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)


if TYPE_CHECKING:
    from dovetail.testing.engine_suite import EngineSuite as EngineSuite
    from dovetail.testing.method_suite import MethodSuite as MethodSuite
    from dovetail.testing.predictor_suite import PredictorCase as PredictorCase
    from dovetail.testing.predictor_suite import PredictorSuite as PredictorSuite
    from dovetail.testing.sub_solver_suite import SubSolverSuite as SubSolverSuite

"""The paper's method and its parts: Algorithm 1, its network steps and penalties, and its baselines.

>>> from dovetail.paper import DualDecomposition, ProjectedGradient
>>> DualDecomposition(rho=10.0, nn_solver=ProjectedGradient(steps=25)).iterations
50

The same classes are `dt.DualDecomposition` and so on (docs/method.md).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from dovetail.core.words import did_you_mean

PARTS = {
    "BalancedPenalty": "dovetail.coupling.penalty",
    "BigM": "dovetail_study.big_m.method",
    "DualDecomposition": "dovetail.methods.dual_decomposition",
    "FixedPenalty": "dovetail.coupling.penalty",
    "IncreasingPenalty": "dovetail.coupling.penalty",
    "LogBarrier": "dovetail.nn.barrier",
    "Multipliers": "dovetail.run.result",
    "ProjectedGradient": "dovetail.nn.projected_gradient",
    "SingleStepGradient": "dovetail_study.single_step_gradient",
}
"""The places of the names."""
__all__ = sorted(PARTS)


def __getattr__(name: str) -> Any:
    if name not in PARTS:
        raise AttributeError(f"module 'dovetail.paper' has no attribute {name!r}{did_you_mean(name, PARTS)}")
    value = getattr(import_module(PARTS[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(PARTS)

"""The study of the paper: its experiments, and ours about its claims, as one command, `dovetail bench`.

The experiments use dovetail's public names only. Their problems (`problems/`), the methods that the paper
compares itself with (`big_m/`, `single_step_gradient.py`) and the demo are in this package, too. The library
never imports this package: tables name its parts, which are loaded on use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dovetail.core.table import Part, Table

if TYPE_CHECKING:  # this table is read by the command line: it must not load torch
    from dovetail_study.experiment import Experiment

EXPERIMENTS: Table[Experiment] = Table(
    "experiment",
    "experiments",
    Part(
        "e1",
        "dovetail_study.e1:E1",
        "dual decomposition against big-M, over network and problem sizes (water)",
    ),
    Part("e2", "dovetail_study.e2:E2", "networks of growing depth, plain and trainable (water)"),
    Part(
        "e3",
        "dovetail_study.e3:E3",
        "without dual updates: single-step gradient, dual decomposition, SCIP (water)",
    ),
    Part("e4", "dovetail_study.e4:E4", "four kinds of network, one unchanged solver (water)"),
    Part("e5", "dovetail_study.e5:E5", "the network step's sub-solver swapped, beside SCIP (tree planting)"),
    Part(
        "readings",
        "dovetail_study.readings:EXPERIMENT",
        "what the paper leaves open in its algorithm, reading by reading (water)",
    ),
    Part("theory", "dovetail_study.theory:THEORY", "Theorems 1 and 2, with their assumptions and without"),
    Part(
        "sensitivity",
        "dovetail_study.sensitivity:SENSITIVITY",
        "rho and step size, fixed and adaptive (water)",
    ),
)

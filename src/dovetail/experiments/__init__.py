"""The paper's experiments, and ours about its claims, as one command: `dovetail bench`.

Everything here uses dovetail's public names only. Experiments are listed by name here and imported
when asked for, so that `dovetail --help` is quick.
"""

from __future__ import annotations

EXPERIMENTS = {
    "e1": "dual decomposition against big-M, over network and problem sizes (water)",
    "e2": "networks of growing depth, plain and trainable (water)",
    "e3": "without dual updates: single-step gradient, dual decomposition, SCIP (water)",
    "e4": "four kinds of network, one unchanged solver (water)",
    "e5": "the network step's sub-solver swapped, beside SCIP (tree planting)",
    "theory": "Theorems 1 and 2 on problems that satisfy their assumptions",
    "sensitivity": "rho and step size, fixed and adaptive (water)",
}

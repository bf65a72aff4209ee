"""What the methods in the tables are, in a sentence each."""

from __future__ import annotations

import dovetail as dt
from dovetail_study.paper import RHO

OURS = dt.DualDecomposition()

LEGEND = {
    "paper": (
        f"Algorithm 1 with the paper's split and settings, rho fixed at {RHO:g}; where the paper's text is "
        "open, the one reading that was chosen on other seeds (a class's logit, a fresh Adam from u(k-1), "
        "the best of its steps); MIP steps by whichever engine is fastest"
    ),
    "paper-scip": "the same with SCIP for the MIP steps, which is the paper's solver",
    "paper-adaptive": "the same with rho raised whenever the primal residual ceases to decrease",
    "paper-balanced": "the same with rho balanced between residuals, which may lower it too",
    "paper-no-dual": "the same with the multipliers kept at zero: what the dual update alone is worth",
    "paper-outputs": "the same with our second coupling in place of the paper's copies of other columns",
    "paper-barrier": "the same with the log barrier in place of projected gradient",
    "dual-decomposition": (
        f"Algorithm 1 with our defaults (rho {OURS.rho:g}, patience {OURS.patience}), which were chosen on "
        "water instances of E1's shape: where they are better than the paper's settings on such, that "
        "is weaker evidence"
    ),
    "auto": "what dovetail does when no method is named: no contestant here, but a reference for quality",
    "big-m": "the network written out by PySCIPOpt-ML and solved by SCIP: the paper's baseline",
    "big-m-sos": "the same with special ordered sets",
    "ssg": "the paper's single-step gradient (Algorithm 2), with Adam as its text has it",
    "ssg-plain": "the same with the plain steps of its listing",
    "ssg-one-step": "the variant that the text of E3 describes: one step, then rounding",
    "size": "nothing is solved: what big-M would have to build is counted",
    "exact": "Algorithm 1 with both steps solved to the end",
}

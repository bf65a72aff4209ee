"""The numbers that the paper reports and that are compared, with their instances."""

from __future__ import annotations

import math

BUDGETS = ("total", "per sample")
"""Its experiments say "per-feature budgets of ±2.0", its appendix that budgets limit the sum over samples:
claims about water are judged in both readings, the headline and the sensitivity with totals."""
ITERATIONS = 50
"""The largest size of a loop."""

E1_NETWORKS, E1_SIZES = ("2x16", "4x32", "6x64", "6x128"), (25, 50, 100, 200, 400)
HEADLINE = {"network": "6x128", "n": 500, "budgets": "total"}
"""The instance of its headline speed-up, which is not one of E1's sizes."""
HEADLINE_SECONDS, HEADLINE_BASELINE, HEADLINE_RATIO = 8.7, 900.0, 100.0
E1_NEAR, E1_EXCEEDS, E1_RATIOS = 10.0, 100.0, (10.0, 100.0)
"""DD stays "near 10 s" where big-M exceeds 100 s; the lower end of its "10 to 100 times"."""

E2_NETWORKS = ("2x16", "4x32", "8x64", "16x128", "32x256", "64x512")
E2_SAMPLES = 100
BEYOND = E2_NETWORKS[3:]
"""The networks beyond 6x128, for which the paper states that big-M fails."""
DEEPEST = "64x512"
DEEPEST_SECONDS = 90.0
INTRODUCTION = {"network": DEEPEST, "n": 500}
"""The instance whose written-out size its introduction names, and on which SCIP "still times out"."""
WRITTEN_VARIABLES, WRITTEN_CONSTRAINTS, DD_VARIABLES = 5.9e6, 7.8e6, 500
INTRODUCTION_SECONDS = 7200.0

E3_SIZES = (20, 40, 60, 80)
"""Its results are for these sizes; its text names 32, 64 and 128."""
E3_TEXT_SIZES = (32, 64, 128)
SSG_QUALITY = {20: 0.45, 40: 0.94, 60: 0.53, 80: 0.50}
DD_QUALITY = {20: 1.0, 40: 1.0, 60: 1.0, 80: 0.998}
DD_ITERATIONS = {20: 10.0, 40: 12.0, 60: 42.0, 80: 48.0}
SSG_ITERATIONS = (73, 100)
SSG_CAP = 100
"""The largest number of iterations of SSG."""
MOST_LOST = 0.55
"""Without the dual update "up to 55 %" of the quality is said to be lost."""
SSG_SPEED = {20: 0.3, 40: 2.7, 60: 20.0, 80: 20.0}
DD_SPEED = {40: 2.2, 60: 66.7, 80: 111.7}
MORE_ITERATIONS = 100.0
"""Without dual updates iterations are said to rise "by two–three orders of magnitude"."""

E4_KINDS = {"2x16": "FC", "conv1d": "Conv1d", "residual": "residual", "lstm": "LSTM"}
E4_SIZES = (60, 100, 200)
ACCURACY = {"2x16": 0.694, "conv1d": 0.743, "lstm": 0.791, "residual": 0.696}
CONVERGENCE = {"2x16": 0.75, "conv1d": 0.83, "residual": 0.83, "lstm": 0.50}
E4_SECONDS = {"2x16": 6.0, "residual": 8.0, "conv1d": 15.0, "lstm": 50.0}
SWAPPED = ("conv1d", "lstm")
SWAPPED_SECONDS = 47.0

E5_NETWORKS = ("8x32", "16x64", "24x128")
E5_SECONDS = {"big-m": (111.0, math.nan, 860.0), "paper-barrier": (8.5, 24.8, 63.1), "paper": (0.4, 1.4, 6.5)}
"""Network by network; of SCIP the least and the most."""
E5_SPEED = {"paper": (130.0, 280.0), "paper-barrier": (13.0, 16.0)}
BARRIER_OVER_GRADIENT = (9.0, 21.0)
SWAP_RATIO = 2.0
"""Its introduction: swapping the sub-solver changes the time by less than a factor of two."""

RHO, STEP = 10.0, 0.01

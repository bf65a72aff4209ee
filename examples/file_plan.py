"""A production plan read from an MPS file; the wear of the machine is any Python function.

Columns are addressed by the names in the file.
"""

import tempfile
from pathlib import Path

import numpy as np

import dovetail as dt

MPS = """NAME          PLAN
OBJSENSE
    MAX
ROWS
 N  PROFIT
 L  HOURS
 L  REPAIR
COLUMNS
    MARKER                 'MARKER'                 'INTORG'
    A         PROFIT             5.0   HOURS              2.0
    B         PROFIT             4.0   HOURS              1.0
    MARKER                 'MARKER'                 'INTEND'
    SPEED     PROFIT             0.5
    WEAR      PROFIT            -1.0   REPAIR             1.0
RHS
    RHS       HOURS             14.0   REPAIR            20.0
BOUNDS
 UP BOUND     A                  8.0
 UP BOUND     B                  8.0
 LO BOUND     SPEED              1.0
 UP BOUND     SPEED              3.0
 FR BOUND     WEAR
ENDATA
"""


def wear(plan: np.ndarray) -> np.ndarray:
    """Wear for each row of (a, b, speed): a function without a gradient."""
    a, b, speed = plan.T
    return 0.15 * (a + b) ** 2 * (speed - 1.5) ** 2 + np.log1p(np.maximum(a + b, 0.0)) * np.maximum(
        a - b, 0.5
    )


with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "plan.mps"
    path.write_text(MPS)
    problem = dt.Problem(dt.read(path))
problem.add_predictor(wear, ["A", "B", "SPEED"], ["WEAR"])

result = dt.solve(problem, time_limit=5)

print(dict(zip(["A", "B", "SPEED", "WEAR"], result.value(["A", "B", "SPEED", "WEAR"]).round(3), strict=True)))
print(f"profit {result.objective:.3f} ({result.status.value})")

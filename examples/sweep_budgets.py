"""One plant under several budgets: a sweep over the cores of this machine, then the best case solved again.

Other processes import `build`, so it is a function of a file, and the program itself stands under
`if __name__ == "__main__":`.
"""

import tempfile
from pathlib import Path

import numpy as np
import torch

import dovetail as dt


def build(budget: float, machines: int) -> tuple[dt.Problem, dict[str, float]]:
    """The plant with this budget and number of machines; a network (made up) predicts the output."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).double()
    mip = dt.Mip(
        cost=[-0.2, -0.1, -0.05, 10.0],
        A=[[1.0, 1.0, 0.5, 0.0]], row_lower=[-np.inf], row_upper=[budget],
        lower=[0.0, 0.0, 0, -np.inf], upper=[1.0, 1.0, machines, np.inf],
        integer=[False, False, True, False], sense="max", names=["heat", "flow", "machines", "made"],
    )  # fmt: skip
    problem = dt.Problem(mip)
    problem.add_predictor(net, ["heat", "flow", "machines"], ["made"])
    return problem, {"time_limit": 10.0, "gap": 1e-3}


if __name__ == "__main__":
    grid = {"budget": [1.0, 2.0], "machines": [1, 3]}
    with tempfile.TemporaryDirectory() as folder:  # keep the file to continue a sweep later
        table = dt.sweep(build, grid, out=Path(folder) / "plans.jsonl", n_jobs=2)
    for row in table:
        print(row.case, row.status, row.objective, row.error)

    best = max((row for row in table if not row.error), key=lambda row: row.objective)
    problem, options = build(**best.case)
    result = dt.solve(problem, start=best.result, **options)
    print(best.case, dict(zip(problem.mip.names, result.x.round(3).tolist(), strict=True)))

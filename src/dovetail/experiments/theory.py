"""Theorems 1 and 2, on problems that satisfy every assumption: does the loop do what the proofs say?

    min  g(x)   over whole x in [-3, 3]^p,   g(u) = 1/2 u'Qu - b'u  convex,  L = largest eigenvalue of Q

with rho = 1.5 L > L and both steps solved to the end, as the proof assumes. Families: *whole*; *rows*, with
a row on x; *apart*, where X and C are both there and have no point in common, which Assumption 1 does
not exclude; *continuous*, without integers; and *small rho*, with rho = 0.3 L against the assumption. The
second part measures the cost of an iteration against the number of parameters.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import dovetail as dt
from dovetail.experiments.contestants import contest
from dovetail.experiments.experiment import Experiment, Rows
from dovetail.experiments.figures import Drawing, Lines
from dovetail.experiments.instances import on_water
from dovetail.experiments.run import Record, Run, Settings, runs
from dovetail.experiments.statistics import average, exponent, mean, text, where
from dovetail.experiments.table import Table
from dovetail.experiments.verdict import Verdict, judged, share_held

NAME = "theory"
METHODS = ("exact", "paper")
FAMILIES = ("continuous", "whole", "rows", "apart", "small rho")
ASSUMED = FAMILIES[:-1]
"""The families in which every assumption of Theorem 1 holds."""
COLUMNS, REACH = 3, 3
ITERATIONS, QUICK_ITERATIONS = 200, 24
AGREED = 1e-4
"""The paper's tolerance."""
STEPS = 45
"""Gradient steps per network step: each leaves at most 2/5 of the error, so these leave 1e-18 of it."""
PATIENCE = 600.0
"""Seconds, in place of the bench's limit: these runs end after their iterations, whatever the clock says."""
COSTS = ("4x64", "8x128", "16x128", "16x256", "16x512")
COST_ITERATIONS, COST_SAMPLES = 4, 50


class Convex(nn.Module):
    """g(u) = 1/2 u'Qu - b'u."""

    Q: Tensor
    b: Tensor

    def __init__(self, Q: np.ndarray, b: np.ndarray) -> None:
        super().__init__()
        self.register_buffer("Q", torch.as_tensor(Q))
        self.register_buffer("b", torch.as_tensor(b))

    def forward(self, u: Tensor) -> Tensor:
        """(n, p) -> (n, 1)."""
        value: Tensor = (0.5 * (u @ self.Q) * u - u * self.b).sum(dim=1, keepdim=True)
        return value


def _runs(settings: Settings) -> list[Run]:
    families: list[dict[str, Any]] = [{"family": family} for family in FAMILIES]
    costs = [
        {"family": "cost", "network": w, "n": 5 if settings.quick else COST_SAMPLES}
        for w in (("2x16", "4x32") if settings.quick else COSTS)
    ]
    # the cost of an iteration does not depend on the seed
    alone = replace(settings, seeds=settings.seeds[:1])
    return runs(NAME, families, METHODS[:1], settings) + runs(NAME, costs, METHODS[1:], alone)


def _execute(run: Run, settings: Settings) -> Record:
    if run["family"] == "cost":
        return on_water(run, settings, replace(dt.DualDecomposition.paper(), iterations=COST_ITERATIONS))
    example = Example(run["family"], run.seed)
    iterations = QUICK_ITERATIONS if settings.quick else ITERATIONS
    settings = replace(settings, time_limit=PATIENCE)
    method, problem = example.method(iterations), example.problem()
    row, result = contest(problem, run, settings, method)
    assert result is not None
    quarters = [iterations * quarter // 4 for quarter in (1, 2, 3)]
    shorter = [contest(problem, run, settings, replace(method, iterations=k))[1] for k in quarters]
    return row | {
        "smoothness": example.smoothness,
        "rho": example.rho,
        "residuals": [float(f"{step.primal:.4g}") for step in result.trace],
        "lagrangian": [float(f"{step.lagrangian:.10g}") for step in result.trace],
        "rises": sum(step.merit > step.lagrangian + 1e-12 for step in result.trace),
        "falls": sum(step.merit < step.lagrangian - 1e-12 for step in result.trace),
        "prices": [_price(part) for part in (*shorter, result)],
        "last_objective": result.trace[-1].objective,
        **example.truth(),
    }


def _price(result: dt.Result | None) -> float:
    """The norm of the multipliers a run ended with."""
    assert result is not None
    assert result.multipliers is not None
    return float(np.linalg.norm(result.multipliers.inputs["g"]))


class Example:
    """One problem of a family."""

    def __init__(self, family: str, seed: int) -> None:
        chance = np.random.default_rng([seed, FAMILIES.index(family)])
        self.family = family
        if family == "apart":
            self.Q = np.diag(chance.uniform(1.0, 4.0, COLUMNS))
            self.b = self.Q @ (chance.integers(-2, 2, COLUMNS) + 0.5)  # the minimum lies between whole points
        else:
            root = chance.standard_normal((COLUMNS, COLUMNS))
            self.Q = root @ root.T + 0.1 * np.eye(COLUMNS)
            self.b = self.Q @ chance.uniform(-2.0, 2.0, COLUMNS)
        self.row = chance.integers(1, 4, COLUMNS).astype(float)
        self.smoothness = float(np.linalg.eigvalsh(self.Q)[-1])
        self.rho = (0.3 if family == "small rho" else 1.5) * self.smoothness

    def value(self, points: np.ndarray) -> np.ndarray:
        """g at each row."""
        return np.asarray(0.5 * np.einsum("ij,jk,ik->i", points, self.Q, points) - points @ self.b)

    @property
    def most(self) -> float:
        """The largest g that C allows: halfway between its least value and its least at a whole point."""
        if self.family != "apart":
            return np.inf
        lowest = -0.5 * self.b @ np.linalg.solve(self.Q, self.b)
        return float(0.5 * (lowest + self.value(self.whole_points()).min()))

    def problem(self) -> dt.Problem:
        """The problem, g as its network."""
        p = COLUMNS
        rows: dict[str, Any] = {}
        if self.family == "rows":
            rows = {"A": [[*self.row, 0.0]], "row_lower": [-np.inf], "row_upper": [1.0]}
        mip = dt.Mip(
            cost=[0.0] * p + [1.0],
            lower=[-float(REACH)] * p + [-np.inf],
            upper=[float(REACH)] * p + [self.most],
            integer=[self.family != "continuous"] * p + [False],
            **rows,
        )
        problem = dt.Problem(mip)
        problem.add_predictor(Convex(self.Q, self.b), list(range(p)), [p], name="g")
        return problem

    def method(self, iterations: int) -> dt.DualDecomposition:
        """Algorithm 1 as the proof has it: rho fixed, nothing scaled, both steps exact, no early end."""
        solver = dt.ProjectedGradient(
            steps=STEPS, lr=1.0 / (self.smoothness + self.rho), rule="gradient", decay=False, keep_best=False
        )
        return dt.DualDecomposition(
            rho=self.rho, nn_solver=solver, tolerance=1e-300, movement=None, iterations=iterations,
            penalty=dt.FixedPenalty(), scaling="none", mip_gap=0.0, both_starts=False, patience=None,
        )  # fmt: skip

    def whole_points(self) -> np.ndarray:
        """Every point of X."""
        every = np.array(list(itertools.product(range(-REACH, REACH + 1), repeat=COLUMNS)), dtype=float)
        return every[every @ self.row <= 1.0] if self.family == "rows" else every

    def truth(self) -> Record:
        """The optimum, and how many points of X satisfy the theorem's KKT system, by trying them all."""
        if self.family in ("continuous", "apart"):
            lowest = float(-0.5 * self.b @ np.linalg.solve(self.Q, self.b))
            return {"optimum": lowest if self.family == "continuous" else None, "points": None, "kkt": None}
        X = self.whole_points()
        slopes = X @ self.Q - self.b
        apart = X[:, None, :] - X[None, :, :]  # from the second to the first
        change = np.einsum("ijk,jk->ij", apart, slopes) + 0.5 * self.rho * (apart**2).sum(axis=2)
        return {
            "optimum": float(self.value(X).min()),
            "points": len(X),
            "kkt": int((change.min(axis=0) >= -1e-9).sum()),
        }


# --- what the rows say ---------------------------------------------------------------------------


def _agrees(row: Record) -> bool:
    return bool(row["residuals"][-1] <= AGREED)


def _bounded(row: Record) -> bool:
    """Prices after three and four quarters at most twice those after one and two."""
    return bool(max(row["prices"][2:]) <= 2.0 * max(row["prices"][:2]) + 1e-6)


def _rate_holds(row: Record) -> bool:
    """min r^2 over the first k, times k, does not grow from a quarter of the iterations to all of them."""
    k = len(row["residuals"])
    early, late = (min(row["residuals"][:end]) ** 2 * end for end in (k // 4, k))
    return bool(late <= 1.1 * early or late <= AGREED**2 * k)


def _settles(row: Record) -> bool:
    """The augmented Lagrangian comes to rest."""
    tail = row["lagrangian"][-20:]
    return bool(max(tail) - min(tail) <= AGREED * max(1.0, abs(tail[-1])))


def _optimal(row: Record, name: str) -> bool:
    return bool(row[name] is not None and row[name] <= row["optimum"] + AGREED)


def _share_optimal(rows: Rows, name: str) -> str:
    known = [row for row in rows if row["optimum"] is not None and (name == "objective" or _agrees(row))]
    return f"{sum(_optimal(row, name) for row in known)} of {len(known)}" if known else "–"


def _tables(rows: Rows) -> list[Table]:
    convex = [row for row in rows if row["family"] in FAMILIES]
    table = Table(
        "theory",
        "Theorem 1 under its own assumptions: rho = 1.5 L, both steps solved to the end",
        (
            "family",
            "runs",
            "u = x at the end",
            "last residual",
            "rate O(1/k) kept",
            "Lagrangian settles",
            "prices bounded",
            "merit rises in dual steps",
            "KKT points in X",
            "agreed point optimal",
            "best visited optimal",
        ),
        reading=(
            "Counts of runs; *merit rises* counts iterations. The proof has the merit *fall* by half rho "
            "times the squared residual in the dual step; by its own definition it *rises* by rho times "
            "the squared residual, so the descent lemma fails wherever u and x differ. What the theorem "
            "concludes is seen all the same where rho > L and X and C share a point. But with rho > L "
            "many whole points satisfy its KKT system (*KKT points in X*, counted by enumeration), and "
            "the one the loop agrees on is rarely the best. Where X and C share no point, which "
            "Assumption 1 allows, u and x cycle for ever at a distance; with rho below L they may cycle "
            "too."
        ),
    )
    for family in FAMILIES:
        mine = where(convex, family=family)
        if mine:
            rises, steps = (sum(row[name] for row in mine) for name in ("rises", "iterations"))
            table.rows.append(
                [
                    family,
                    str(len(mine)),
                    str(sum(map(_agrees, mine))),
                    text(mean([row["residuals"][-1] for row in mine]), 2),
                    str(sum(map(_rate_holds, mine))),
                    str(sum(map(_settles, mine))),
                    str(sum(map(_bounded, mine))),
                    f"{rises} of {steps}",
                    f"{text(average(mine, 'kkt'))} of {text(average(mine, 'points'))}",
                    _share_optimal(mine, "last_objective"),
                    _share_optimal(mine, "objective"),
                ]
            )
    costs = Table(
        "theory-cost",
        "Theorem 2: seconds per iteration against parameters",
        ("network", "parameters", "MIP step, ms", "network step, ms"),
    )
    for row in where(rows, family="cost"):
        costs.rows.append(
            [
                row["network"],
                f"{row['parameters']:,}",
                text(1e3 * row["mip_seconds"] / row["iterations"]),
                text(1e3 * row["nn_seconds"] / row["iterations"]),
            ]
        )
    return [entry for entry in (table, costs) if entry.rows]


def _verdicts(rows: Rows) -> list[Verdict]:
    convex = [row for row in rows if row["family"] in ASSUMED]
    sharing = [row for row in convex if row["family"] != "apart"]
    small = where(rows, family="small rho")
    rises, falls = sum(row["rises"] for row in convex), sum(row["falls"] for row in convex)
    whole = [row for row in sharing if row["kkt"] is not None and _agrees(row)]
    best = sum(_optimal(row, "last_objective") for row in whole)
    costs = where(rows, family="cost", device="cpu")
    points = [(float(row["parameters"]), row["nn_seconds"] / row["iterations"]) for row in costs]
    mip = [row["mip_seconds"] / row["iterations"] for row in costs]
    power = exponent(points)
    return [
        share_held(
            "Theorem 1: the iterates stay bounded",
            "proved",
            "x lies in a box; prices do not grow over the second half of the iterations",
            [_bounded(row) for row in convex],
            "prices after three and four quarters at most twice those after one and two",
        ),
        share_held(
            "Theorem 1: every limit is a KKT point (u = x)",
            "proved",
            f"u = x at the end in {sum(map(_agrees, sharing))} of {len(sharing)} runs where X and C share "
            f"a point, {sum(map(_agrees, convex)) - sum(map(_agrees, sharing))} of "
            f"{len(convex) - len(sharing)} where they do not, {sum(map(_agrees, small))} of {len(small)} "
            "with rho < L",
            [_agrees(row) for row in convex],
            "the last residual is at most 1e-4 in every run that satisfies the assumptions",
        ),
        judged(
            "Theorem 1: a KKT point is a good answer",
            "without loss of optimality",
            f"with integers {text(average(whole, 'kkt'))} of {text(average(whole, 'points'))} points of X "
            f"are KKT points; the agreed one was optimal in {best} of {len(whole)} runs",
            holds=best == len(whole) if whole else None,
            in_part=best > 0,
            rule="the agreed point is the enumerated optimum in every run",
        ),
        share_held(
            "Theorem 1: residuals fall like O(1/k)",
            "proved",
            "k times the least squared residual does not grow over the last three quarters of the iterations",
            [_rate_holds(row) for row in convex],
            "k times it at the end at most 1.1 times what it was after a quarter, or the residual is 1e-4",
        ),
        share_held(
            "Theorem 1: the augmented Lagrangian converges",
            "like O(1/k)",
            "it comes to rest",
            [_settles(row) for row in convex],
            "its last 20 values are within 1e-4 of each other; the rate is not judged",
        ),
        judged(
            "Proof of Theorem 1: the dual step lowers the merit",
            "falls by rho/2 |u - x|^2",
            f"rises in {rises} iterations, falls in {falls}",
            holds=falls > 0 and rises == 0 if convex else None,
            rule="it falls in every iteration in which u and x differ",
        ),
        judged(
            "Theorem 2: cost per iteration is linear in the parameters, the MIP step's is constant",
            "O(T_MIP + P)",
            f"network step grows like parameters to the power {text(power)}; MIP step "
            f"{text(1e3 * min(mip, default=math.nan))} to {text(1e3 * max(mip, default=math.nan))} ms",
            holds=power <= 1.1 and max(mip) <= 2.0 * min(mip) if len(points) >= 3 else None,
            in_part=power <= 1.1,
            rule="exponent at most 1.1, and the longest MIP step at most twice the shortest",
        ),
    ]


def _draw(rows: Rows) -> Drawing | None:
    convex = [row for row in rows if row["family"] in FAMILIES]
    costs = where(rows, family="cost")
    panels: list[Lines] = []
    if convex:
        seed = convex[0]["seed"]
        shown = {row["family"]: row for row in where(convex, seed=seed)}
        floor = 1e-8
        residuals = {
            family: [(float(k + 1), max(r, floor)) for k, r in enumerate(row["residuals"])]
            for family, row in shown.items()
        }
        residuals["k^-1/2, as proved"] = [(float(k), k**-0.5) for k in range(1, ITERATIONS + 1)]
        merits = {
            family: [(float(k + 1), value) for k, value in enumerate(row["lagrangian"])]
            for family, row in shown.items()
        }
        panels += [
            Lines(
                f"residual, seed {seed}",
                "iteration k",
                "largest |u - x| (floor 1e-8)",
                residuals,
                log_x=True,
                log_y=True,
            ),
            Lines(f"augmented Lagrangian, seed {seed}", "iteration k", "value", merits, log_x=True),
        ]
    if costs:
        points = {
            name: [(float(row["parameters"]), row[f"{key}_seconds"] / row["iterations"]) for row in costs]
            for name, key in (("network step", "nn"), ("MIP step", "mip"))
        }
        panels.append(Lines("cost of an iteration", "parameters", "seconds", points, log_x=True, log_y=True))
    return Drawing("Theorems 1 and 2, measured", panels) if panels else None


THEORY = Experiment(NAME, "Theorems 1 and 2", METHODS, _runs, _execute, _tables, _verdicts, _draw)

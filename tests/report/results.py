"""Results made by hand, so that pages of every size and kind cost no solve."""

from dataclasses import replace

import numpy as np

from dovetail.core.check import Violation, Worst
from dovetail.run.budget import StopReason
from dovetail.run.problem_facts import BlockFacts, Limits, ProblemFacts, Untouched
from dovetail.run.result import BoundKind, Result, Settings, Status
from dovetail.run.trace import Gain, Residual, Row, Trace
from dovetail.run.work import Profile

FEATURES = (
    "ph",
    "Hardness",
    "Solids",
    "Chloramines",
    "Sulfate",
    "Conductivity",
    "Carbon",
    "Thm",
    "Turbidity",
)
SETTINGS = Settings(
    "dt.Auto()",
    {"effort": "None", "patience": "20"},
    {"time_limit": "60.0", "seed": "0"},
    {"dovetail": "0.1.0", "torch": "2.13.0"},
    "aarch64, Linux, 2 cores",
)


def row(k, *, incumbent=float("nan"), residual=1.0, rho=10.0, exact=True):
    return Row(
        iteration=k, objective=incumbent, incumbent=incumbent, source="", rho=rho, lagrangian=0.0, merit=0.0,
        mip_seconds=0.1, nn_seconds=0.1, check_seconds=0.1, elapsed=0.1 * k, exact=exact,
        residuals=(Residual("net", "inputs", residual, residual / 2),) if residual else (),
    )  # fmt: skip


def result(x=(1.0, 0.0, 2.5), *, names=None, lower=0.0, upper=4.0, integer=False, sense="max", **changes):
    """A feasible result over these columns, found in three steps and bounded in two."""
    x = np.asarray(x, dtype=float)
    size = x.size
    facts = ProblemFacts(
        sense,
        n_rows=3,
        limits=Limits(
            lower=np.broadcast_to(np.asarray(lower, dtype=float), size).copy(),
            upper=np.broadcast_to(np.asarray(upper, dtype=float), size).copy(),
            integer=np.broadcast_to(np.asarray(integer), size).copy(),
        ),
        inputs=(),
        outputs=(),
        blocks=(BlockFacts("net", "Sequential", 1, 2, 1, False),),
    )
    trace = Trace(
        [row(k, incumbent=17.0, residual=10.0**-k, rho=10.0 * 2 ** (k // 3)) for k in range(1, 9)],
        [Gain(0.5, 12.0, "host"), Gain(1.5, 15.0, "random"), Gain(4.0, 17.0, "master")],
        [Gain(0.4, 40.0, "host"), Gain(5.0, 20.0, "prices")],
    )
    whole = Result(
        status=Status.FEASIBLE, stop_reason=StopReason.TIME, objective=17.0, bound=20.0,
        bound_kind=BoundKind.PROVEN, x=x, violation=Violation(precision=Worst(3e-8, "net, sample 0")),
        residual=None, multipliers=None, iterations=8, seconds=10.0, trace=trace, method="auto",
        message="the point is verified", profile=Profile(4.0, 3.0, 1.0, 1.0, 1.0), names=names, facts=facts,
        settings=SETTINGS,
    )  # fmt: skip
    return replace(whole, **changes)


def nothing(**changes):
    """A result without a point."""
    told = {
        "status": Status.NO_SOLUTION, "objective": None, "bound": None, "bound_kind": BoundKind.NONE,
        "violation": None, "trace": Trace([row(1)]), "message": "no candidate passed the check",
    }  # fmt: skip
    return replace(result(), x=None, **{**told, **changes})


def treated(n, *, seed=0):
    """The water problem's kind: n samples of nine features, a few of them changed and flipped."""
    rng, d = np.random.default_rng(seed), len(FEATURES)
    before = rng.standard_normal((n, d))
    up = np.where(rng.random((n, d)) < 0.02, rng.random((n, d)), 0.0)
    down = np.where((rng.random((n, d)) < 0.02) & (up == 0.0), rng.random((n, d)), 0.0)
    was = rng.random(n) < 0.2
    now = was | ((up + down).max(axis=1) > 0.0)
    x = np.concatenate([now, (before + up - down).ravel(), up.ravel(), down.ravel()])
    names = [f"potable[{i}]" for i in range(n)]
    names += [f"{kind}[{i},{f}]" for kind in ("x", "up", "down") for i in range(n) for f in FEATURES]
    inputs = n + np.arange(n * d).reshape(n, d)
    untouched = Untouched(inputs, np.arange(n)[:, None], before, was[:, None].astype(float))
    block = BlockFacts("potability", "Sequential", n, d, 1, True, (), untouched)
    made = result(
        x,
        names=tuple(names),
        lower=np.repeat([0.0, -np.inf, 0.0], [n, n * d, 2 * n * d]),
        upper=np.repeat([1.0, np.inf], [n, 3 * n * d]),
        integer=np.repeat([True, False], [n, 3 * n * d]),
    )
    facts = replace(made.facts, inputs=(inputs,), outputs=(np.arange(n),), blocks=(block,))
    return replace(made, facts=facts)

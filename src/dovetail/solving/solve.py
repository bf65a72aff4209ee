"""`dovetail.solve`, as the user calls it: interrupts are heard before anything heavy is imported."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TextIO

from dovetail.core.words import with_suggestions
from dovetail.run.environment import Interrupts

if TYPE_CHECKING:  # this file must not load numpy or torch: that takes seconds in which nobody hears Ctrl-C
    from dovetail.run.context import Method
    from dovetail.run.monitor import Callback
    from dovetail.run.result import Result


@with_suggestions
def solve(
    model: Any,
    method: str | Method = "auto",
    *,
    time_limit: float | None = 60.0,
    gap: float = 1e-4,
    absolute_gap: float = 0.0,
    target: float | None = None,
    seed: int = 0,
    start: Any = None,
    n_jobs: int = 1,
    device: str | None = None,
    cluster: Any = None,
    callback: Callback | None = None,
    log: bool | TextIO = True,
    log_file: str | os.PathLike[str] | None = None,
    load: bool = True,
) -> Result:
    """The best verified point of `model` within `time_limit` seconds; None: without a limit.

    `model` is a `dovetail.Problem`, or a model of PySCIPOpt, highspy, gurobipy, Pyomo or linopy with
    predictors tied to it by `add_predictor_constr`, of which nothing is changed but, with `load`, the values.
    `method` is a name (see `dovetail list`) or a method object with options of its own. `start` is a
    value for every column, or an earlier `Result`, whose multipliers are then used too. `n_jobs` solves run
    at once, with seeds and processes of their own, one per core at most. `device="cuda"` moves the networks'
    gradients there; answers are checked where the predictor lives. `cluster` spreads blocks that are the same
    up to their data over `n_jobs` workers of Ray (docs/cluster.md): "local" starts one here and ends it,
    "auto" or "host:6379" is one that runs, the module `ray` one that this process has started. `callback`
    sees an `Event` after each iteration and may call its `stop()`. `log=False` prints nothing; a stream gets
    the log written to it, and the file `log_file` besides, at its end (docs/log.md).
    A solution is optimal, and the search ends, where a bound proves its objective to be within `gap` of the
    best, relative as in `Result.gap` (1e-4 is 0.01 %; 0 asks for the last digit), or within `absolute_gap`.
    `target` ends the search with the first solution that is as good, whatever is proved. Time limit, Ctrl-C,
    SIGTERM and `stop()` return the best point so far; after SIGTERM the next solve in this process raises
    SystemExit(143), a second SIGTERM ends it at once. Signals that the caller ignores or (SIGTERM) handles
    are left alone. An error or a second Ctrl-C once a point is known carries the result so far as `result`.

    >>> import dovetail as dt
    >>> problem = dt.Problem(dt.Mip(cost=[1.0, -1.0], upper=[3.0, 9.0], integer=[True, False]))
    >>> block = problem.add_predictor(lambda X: X**2, inputs=[0], outputs=[1])
    >>> result = dt.solve(problem, time_limit=10, log=False)
    >>> result.status.value, result.objective, result.x.tolist()
    ('optimal', -6.0, [3.0, 9.0])
    """
    answers: list[Result] = []
    try:
        with Interrupts() as interrupts:
            from dovetail.solving.job import solve_model
            from dovetail.solving.options import SolveOptions

            options = SolveOptions.checked(
                method, time_limit=time_limit, gap=gap, absolute_gap=absolute_gap, target=target, seed=seed,
                start=start, n_jobs=n_jobs, device=device, cluster=cluster, callback=callback, log=log,
                log_file=log_file, load=load)  # fmt: skip
            answers.append(solve_model(model, options, interrupts))
        return answers[0]
    except KeyboardInterrupt as leaving:
        if answers:  # it came between the last line of the solve and the caller
            leaving.result = answers[0]  # type: ignore[attr-defined]
        raise

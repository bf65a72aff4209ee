"""`dovetail.solve`: signal handlers are set before large libraries are imported."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TextIO

from dovetail.core.words import with_suggestions
from dovetail.run.environment import Interrupts

if TYPE_CHECKING:
    from logging import Logger

    # this file must not load numpy or torch: until the handlers are set, Ctrl-C is not handled
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
    progress: Callback | bool | None = None,
    log: bool | TextIO | Logger = True,
    log_file: str | os.PathLike[str] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    load: bool = True,
    solutions: int = 1,
    distance: float = 0.1,
) -> Result:
    """Find the best solution of `model` within `time_limit` seconds.

    Every solution is checked by your own predictors before it is returned. The model is not changed, except
    that the solution is written into it (`load`). A time limit, Ctrl-C, SIGTERM or `Event.stop()` returns
    the best solution so far. After a SIGTERM the next solve in this process raises `SystemExit(143)`; a
    second SIGTERM ends the process at once. Handlers of signals that the caller ignores, and the caller's own
    handler of SIGTERM, are not replaced. An error or a second Ctrl-C after a solution was found has the
    result so far as its attribute `result`.

    Args:
        model: A `dovetail.Problem`, or a model of PySCIPOpt, highspy, gurobipy, Pyomo or linopy to which
            `add_predictor_constr` has attached predictors.
        method: A name (see `dovetail list methods`), or a method object with options of its own.
        time_limit: In seconds; None for no limit.
        gap: The solve ends with status optimal when a bound proves the objective within this gap, relative
            to the objective (1e-4 is 0.01 %; 0 asks for 1e-9).
        absolute_gap: The same in units of the objective.
        target: The solve ends with the first solution that has this objective or a better one.
        seed: Of random numbers.
        start: Where the search begins: names of variables with values, a frame, a value for every variable,
            an earlier `Result` (its multipliers are used too) or its file, or `model` for the values that the
            model holds. What is not given is completed (docs/long_solves.md).
        n_jobs: Number of processes, at most one per core; -1: one per core (docs/cluster.md).
        device: "cuda" computes gradients of networks on a GPU. Solutions are checked on the predictor's own
        device. cluster: Distributes equal blocks over `n_jobs` workers of Ray: "local" starts Ray and ends
        it, "auto"
            or "host:6379" uses a running Ray, the module `ray` the one of this process (docs/cluster.md).
        callback: Called with an `Event` after each iteration.
        progress: Called with an `Event` about once a second, from another thread, and at the end; True draws
            a live chart in a notebook (docs/log.md).
        log: True prints the log, False prints nothing, a stream or a `logging.Logger` receives the log
            (docs/log.md).
        log_file: A file to which the log is appended.
        checkpoint: A file to which the state of the solve is written every minute and at the end;
            `dovetail.resume` continues from it (docs/long_solves.md).
        load: Whether to write the solution into the model.
        solutions: Number of solutions: `result.solutions` has the best, and the best that differ from those
            before (docs/several.md). The best one gets half of the time.
        distance: Without integer decisions, by how much an input of a predictor must differ, as a part of its
            range.

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
                start=start, n_jobs=n_jobs, device=device, cluster=cluster, callback=callback,
                progress=progress, log=log, log_file=log_file, checkpoint=checkpoint, load=load,
                solutions=solutions, distance=distance)  # fmt: skip
            options = replace(options, again=solve)
            if options.solutions > 1:
                from dovetail.solving.several import solve_several

                answers.append(solve_several(model, options, interrupts))
            else:
                answers.append(solve_model(model, options, interrupts))
        return answers[0]
    except KeyboardInterrupt as leaving:
        if answers:  # the signal came between the end of the solve and the return to the caller
            leaving.result = answers[0]  # type: ignore[attr-defined]
        raise

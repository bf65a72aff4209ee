"""A solve in a process of its own that is interrupted from outside, and what came of it.

`python -m tests.robustness.interrupted METHOD WARM PROBLEM` is the process: it prints "ready", solves, and
prints its answer as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

import numpy as np

from tests.processes import hear_ctrl_c

FIRST = {signal.SIGINT: 0.0, signal.SIGTERM: 0.05}
"""Seconds after "ready" at which the signal may come; a SIGTERM before the solve begins ends the process."""
PATIENCE = 300.0
"""Seconds after which a process that does not answer is killed: that is a failure, not a measurement."""


@dataclass(frozen=True)
class Case:
    """Where and when a signal comes."""

    method: str
    warm: bool
    problem: str
    number: signal.Signals
    delay: float

    @classmethod
    def random(cls, seed: int, methods: list[str]) -> Case:
        """Any method, cold or warm, a moment between the first millisecond and some seconds."""
        rng = np.random.default_rng(seed)
        method = methods[seed % len(methods)]
        number = signal.SIGINT if rng.random() < 0.5 else signal.SIGTERM
        delay = FIRST[number] + float(10 ** rng.uniform(-3.0, 0.5))
        return cls(method, bool(rng.random() < 0.5), str(rng.choice(list(PROBLEMS))), number, delay)


@dataclass(frozen=True)
class Answer:
    """What the process said, and how long after the signal."""

    seconds: float
    code: int
    report: dict[str, object]
    stderr: str
    children: list[str]


def interrupted(case: Case) -> Answer:
    """Start the process, wait for its "ready", send the signal, read the answer."""
    command = [
        sys.executable,
        "-m",
        "tests.robustness.interrupted",
        case.method,
        str(int(case.warm)),
        case.problem,
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=hear_ctrl_c,
        start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().strip() == "ready"
        time.sleep(case.delay)
        begin = time.perf_counter()
        process.send_signal(case.number)
        try:
            out, err = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
    line = out.strip().splitlines()[-1] if out.strip() else "{}"
    report = json.loads(line)
    answered = report.get("at", time.monotonic()) - (time.monotonic() - (time.perf_counter() - begin))
    return Answer(answered, process.returncode, report, err, left_over(process.pid))


def left_over(session: int) -> list[str]:
    """Processes of the session that are still there."""
    found = []
    for entry in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(entry)
    return found


def _busy():
    from dovetail.testing.problems import busy

    return busy(60)


def _many():
    """A hundred networks, each another one."""
    import dovetail as dt
    from tests.small import random_mlp

    n = 100
    mip = dt.Mip(
        cost=np.repeat([0.0, 1.0], [2 * n, n]), A=np.repeat([[1.0, 0.0]], [2 * n, n], axis=1),
        row_lower=[-np.inf], row_upper=[5.0], lower=np.repeat([-1.0, -np.inf], [2 * n, n]),
        upper=np.repeat([1.0, np.inf], [2 * n, n]),
    )  # fmt: skip
    problem = dt.Problem(mip)
    for k in range(n):
        problem.add_predictor(random_mlp(2, width=24, seed=k), [2 * k, 2 * k + 1], [2 * n + k])
    return problem


def _large():
    """So many neurons that writing them out takes long."""
    from benchmarks.made_up import made_up

    return made_up(100, "4x64").problem


PROBLEMS = {"busy": _busy, "many": _many, "large": _large}


def _too_early(*_: object) -> None:
    """On a busy machine the signal may come before the solve has begun: that is no case."""
    print(json.dumps({"early": True}), flush=True)
    os._exit(0)


def _main(method: str, warm: bool, name: str) -> None:
    import dovetail as dt

    problem = PROBLEMS[name]()
    if warm:
        from tests.conformance.test_methods import endless

        dt.solve(problem, method, time_limit=1.0, log=False)
        chosen = endless(method)
    else:
        chosen = method
    signal.signal(signal.SIGINT, _too_early)
    print("ready", flush=True)
    result = dt.solve(problem, chosen, time_limit=120.0, log=False)
    at = time.monotonic()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    verified = result.x is not None and dt.check(problem, result.x).within()
    report = {
        "at": at, "status": result.status, "stop": result.stop_reason, "verified": verified,
        "point": result.x is not None, "message": result.message,
    }  # fmt: skip
    print(json.dumps(report), flush=True)


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2] == "1", sys.argv[3])

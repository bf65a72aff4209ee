"""The differential suite of bounds at volume: `python -m benchmarks.bounds_volume --instances 10000`.

Prints what was counted, and every claim that is wrong; ends with 1 if there is one.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from tests.differential.claims import ACCEPTED, EXACT, Count, judge
from tests.differential.proof_cases import make
from tests.differential.proof_phases import ProofPhases

import dovetail as dt

CHUNK = 10
"""Instances per task: a few seconds to a minute, so that the counts move and workers end together."""


PROOFS = {"auto": (dt.Auto(effort=1), EXACT), "phases": (ProofPhases(), ACCEPTED)}
"""What is asked, and by how much the points that it is held against may miss rows: a proof phase has to hold
for everything that the check accepts; engines, which `auto` asks as well, hold for exact rows."""


def work(first: int, last: int, seconds: float, name: str, certifying: float) -> Count:
    """Instances of a range."""
    import torch

    torch.set_num_threads(1)
    count, (method, room) = Count(), PROOFS[name]
    for seed in range(first, last):
        alone = name != "auto"
        count.add(
            judge(make(seed), method, time_limit=seconds, room=room, deaf_only=alone, certifying=certifying)
        )
    return count


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bounds_volume", description=__doc__)
    parser.add_argument("--instances", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first instance")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--seconds", type=float, default=2.0, help="time limit of one solve")
    parser.add_argument("--certifying", type=float, default=2.0, help="seconds for a certificate, each")
    parser.add_argument("--method", choices=sorted(PROOFS), default="auto")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    total, begin, last = Count(), time.perf_counter(), options.first + options.instances
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        tasks = [
            pool.submit(work, k, min(k + CHUNK, last), options.seconds, options.method, options.certifying)
            for k in range(options.first, last, CHUNK)
        ]
        for number, task in enumerate(as_completed(tasks), start=1):
            count = task.result()
            total.add(count)
            for wrong in count.wrong:
                print("WRONG", wrong, flush=True)
            if number % 10 == 0 or number == len(tasks):
                print(f"{time.perf_counter() - begin:8.0f} s  {total}", flush=True)
    return 1 if total.wrong else 0


if __name__ == "__main__":
    sys.exit(main())

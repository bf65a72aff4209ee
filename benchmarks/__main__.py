"""`python -m benchmarks [names] [--data DIR] [--out DIR]`"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from benchmarks import (
    ablation,
    assembly,
    device,
    equal_time,
    jobs,
    many_blocks,
    memory,
    models,
    network_size,
    other_networks,
    overshoot,
    proof_device,
    reference,
    stated_families,
    swaps,
    timers,
    trust,
    zoo,
)
from dovetail_study.experiment import ResultTable


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure; nothing passes or fails."
    )
    parser.add_argument("--data", type=Path, default=os.environ.get("DOVETAIL_DATA") or None)
    parser.add_argument(
        "--jobs",
        type=int,
        default=1,
        help="processes at a time (reference, ablation, equal_time, other_networks)",
    )
    parser.add_argument(
        "--results", type=Path, default=Path("docs/results.jsonl"), help="rows of dovetail bench"
    )
    parser.add_argument("--device", default="cuda", help="where proof_device solves")
    parser.add_argument("--networks", nargs="*", default=[], help="of proof_device: some of them")
    parser.add_argument("--out", type=Path, help="write each table there as Markdown")
    known: dict[str, Callable[[], ResultTable]] = {
        "timers": timers.run,
        "assembly": lambda: assembly.run(options.data),
        "network_size": network_size.run,
        "memory": memory.run,
        "overshoot": overshoot.run,
        "many_blocks": many_blocks.run,
        "stated_families": stated_families.run,
        "models": models.run,
        "swaps": swaps.run,
        "device": device.run,
        "jobs": lambda: jobs.run(options.data),
        "ablation": lambda: ablation.run(options.data, options.jobs),
        "equal_time": lambda: equal_time.run(options.data, options.results, options.jobs),
        "other_networks": lambda: other_networks.run(options.jobs),
        "proof_device": lambda: proof_device.run(
            options.data, options.device, set(options.networks), options.out
        ),
        "reference": lambda: reference.run(options.data, options.jobs),
        "trust": lambda: trust.run(options.data, options.jobs),
        "zoo": lambda: zoo.run(1, 1, 10.0),
    }
    parser.add_argument(
        "names", nargs="*", metavar="name", help=f"all of them, or some of {', '.join(known)}"
    )
    options = parser.parse_args()
    unknown = set(options.names) - set(known)
    if unknown:
        parser.error(f"{', '.join(unknown)} is not one of {', '.join(known)}")
    console = Console(width=150)
    for name in options.names or known:
        console.print(f"[dim]measuring {name} ...[/dim]")
        table = known[name]()
        table.show(console)
        if options.out:
            table.write(options.out)


if __name__ == "__main__":
    main()

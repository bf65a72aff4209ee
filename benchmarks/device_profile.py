"""Where a solve of many blocks spends its time, section by section, on a GPU or without one.

    python -m benchmarks.device_profile --device cuda --out figures
    python -m benchmarks.device_profile --cases 2x16:100000 dual-decomposition:2x16:100

Every case is solved three times in one process: once to load what is loaded once, once as it is (the figure
that counts), once with a stopwatch around sections, which waits for the GPU at their ends. Water stated as a
template, priced by `TemplatePricing` (`auto` goes on with proofs to the end of its time); 50 iterations of
a loop by its name, on plain water.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

import dovetail as dt
from benchmarks.many_blocks import stated
from dovetail.decomposition import TemplatePricing
from dovetail.decomposition.oracle import fused_step
from dovetail.methods import METHODS
from dovetail_study.problems import networks, water
from dovetail_study.problems.training import train_classifier

CASES = (
    "2x16:1000000", "6x128:1000000", "64x512:10000", "dual-decomposition:64x512:500", "2x16:10000000",
    "paper:64x512:500",
)  # fmt: skip
ITERATIONS = 50
"""Of the paper's loop."""
DEEP, DEEP_EPOCHS = 20, 8
"""Layers from which on a plain network comes out constant: its hidden layers begin as the identity then."""
NOISE = 0.2
"""Of the identity's weights, by the root of the width: as large as lets the signal through 64 layers."""
LIMIT = 60.0

SECTIONS = (
    "dovetail.modelling.snapshot:take_snapshot",
    "dovetail.solving.job:analyse_host",
    "dovetail.solving.job:open_inputs",
    "dovetail.solving.job:pack",
    "dovetail.solving.job:check",
    "dovetail.solving.job:Job.prepared",
    "dovetail.solving.job:Job._packed",
    "dovetail.decomposition.plan:plan_of",
    "dovetail.decomposition.shares:usual_spread",
    "dovetail.decomposition.shard:BlockData.__init__",
    "dovetail.decomposition.shard:Shard._begin",
    "dovetail.decomposition.shard:Shard.__init__",
    "dovetail.decomposition.shard:Shard.undecided",
    "dovetail.decomposition.shard:Shard.price",
    "dovetail.decomposition.oracle:Oracle.descend",
    "dovetail.decomposition.networks:TemplateNetworks.linearised",
    "dovetail.decomposition.pool:Pool.merge",
    "dovetail.decomposition.shard:Shard.confirm",
    "dovetail.decomposition.shard:confirmed",
    "dovetail.decomposition.device_blocks:DeviceBlocks.__init__",
    "dovetail.decomposition.device_blocks:DeviceBlocks.confirmed",
    "dovetail.decomposition.rounds:Rounds._find_prices",
    "dovetail.decomposition.rounds:Rounds._value",
    "dovetail.decomposition.rounds:improve",
    "dovetail.decomposition.rounds:Rounds.choose",
    "dovetail.decomposition.points:PointShares.point",
    "dovetail.decomposition.choice:Choice.__init__",
    "dovetail.decomposition.choice:Choice.rank",
    "dovetail.decomposition.choice:Choice.fill",
    "dovetail.run.incumbent:Incumbent.admit",
    "dovetail.core.stated_program:StatedProgram.clipped",
    "dovetail.core.stated_program:StatedProgram.objective",
    "dovetail.core.check:Checker._farthest_row",
    "dovetail.core.check:Checker._outside",
    "dovetail.core.check:all_finite",
    "dovetail.predictors.torch.module:TorchPredictor.predict",
    "dovetail.predictors.torch.frozen_copy:FrozenCopy.__call__",
    "dovetail.coupling.augmented_lagrangian:AugmentedLagrangian.mip_step",
    "dovetail.coupling.augmented_lagrangian:AugmentedLagrangian.network_step",
    "dovetail.nn.projected_gradient:gradient",
    "dovetail.nn.projected_gradient:project",
    "dovetail.core.check:Checker.completed",
    "dovetail.core.check:Checker.violation",
    "dovetail.core.check:Said.__init__",
    "dovetail.core.check:nearby",
    "dovetail.core.check:alone",
    "dovetail.core.check:batch_rounding",
)
"""Functions whose time is told: of themselves, and with the sections that they call."""


@dataclass
class Watch:
    """Seconds of sections, those that they call apart."""

    own: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    whole: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    calls: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _inner: list[float] = field(default_factory=list)

    def timed(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """`work`, with a look at the clock before and after."""

        @functools.wraps(work)
        def watched(*arguments: Any, **named: Any) -> Any:
            _wait()
            begin = time.perf_counter()
            self._inner.append(0.0)
            try:
                return work(*arguments, **named)
            finally:
                _wait()
                took, inner = time.perf_counter() - begin, self._inner.pop()
                self.own[name] += took - inner
                self.whole[name] += took
                self.calls[name] += 1
                if self._inner:
                    self._inner[-1] += took

        return watched

    @contextmanager
    def everywhere(self) -> Iterator[None]:
        """Around all sections there are."""
        before: list[tuple[object, str, object]] = []
        for path in SECTIONS:
            module, _, name = path.partition(":")
            holder: Any = importlib.import_module(module)
            *outer, last = name.split(".")
            for each in outer:
                holder = getattr(holder, each, None)
            if holder is None or last not in vars(holder):
                continue
            found = vars(holder)[last]
            before.append((holder, last, found))
            inner = found.__func__ if isinstance(found, classmethod) else found
            watched = self.timed(path.rpartition(".")[2] if "." not in name else name, inner)
            setattr(holder, last, classmethod(watched) if isinstance(found, classmethod) else watched)
        try:
            yield
        finally:
            for holder, last, found in before:
                setattr(holder, last, found)

    def table(self) -> list[tuple[str, float, float, int]]:
        """Name, own seconds, all seconds, calls; the longest first."""
        names = sorted(self.own, key=self.own.__getitem__, reverse=True)
        return [
            (name, round(self.own[name], 3), round(self.whole[name], 3), self.calls[name]) for name in names
        ]


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def judge_of(kind: str, device: str) -> water.Judge:
    """A trained network that is no constant, on the device."""
    layers = kind.partition("x")[0]
    if int(layers) < DEEP:
        judge = water.train(kind, allow_constant=True, epochs=20)
    else:
        plain = water.train("2x16", epochs=1, allow_constant=True)
        torch.manual_seed(0)
        network = networks.build(kind, plain.X.shape[1])
        for layer in list(network.modules()):
            if isinstance(layer, nn.Linear) and layer.in_features == layer.out_features:
                noise = NOISE / layer.in_features**0.5 * torch.randn_like(layer.weight)
                layer.weight.data.copy_(torch.eye(layer.in_features) + noise)
        training = train_classifier(
            network, plain.X, plain.labels, seed=0, epochs=DEEP_EPOCHS, allow_constant=True, device=device
        )
        judge = water.Judge(network, training, plain.X, plain.labels, plain.seed)
    judge.network.to(device)
    return judge


def case(name: str, judge: water.Judge, device: str, n_jobs: int = 1) -> dict[str, Any]:
    """One case: seconds of the wall, and sections."""
    loop, _, n = _parts(name)
    begin = time.perf_counter()
    instance = judge.water(n) if loop else stated(n, judge)
    told: dict[str, Any] = {"case": name, "n_jobs": n_jobs, "training": str(judge.training)}
    told["stating"] = time.perf_counter() - begin
    method: Any = TemplatePricing()
    if loop:
        method = METHODS.make(loop)
        method = replace(method, iterations=ITERATIONS, patience=None)

    def solved() -> dt.Result:
        return dt.solve(instance.problem, method, time_limit=LIMIT, device=device, n_jobs=n_jobs, log=False)

    for which in ("first", "second"):
        begin = time.perf_counter()
        result = solved()
        told[which] = time.perf_counter() - begin
    counts = instance.counts(result)
    told |= {
        "untouched": counts.untouched, "potable": counts.potable, "status": result.status.value,
        "iterations": result.iterations, "evaluations": result.evaluations, "message": result.message,
        "shares": result.profile.shares(),
        "within": dt.check(instance.problem, result.x).within(),
    }  # fmt: skip
    if torch.cuda.is_available():
        told["GPU GB"] = torch.cuda.max_memory_allocated() / 1e9
    watch = Watch()
    with watch.everywhere():
        begin = time.perf_counter()
        solved()
        told["watched"] = time.perf_counter() - begin
    told["sections"] = watch.table()
    return told


def kernel(device: str) -> str:
    """Whether a pricing step is one kernel here, or why not."""
    try:
        step = fused_step(device, 2)
    except ImportError:
        return "no, no Triton"
    if step is None:
        return "no, none for this device"
    row, one = torch.zeros((1, 2), device=device), torch.ones(1, device=device)
    begin = time.perf_counter()
    try:
        step(row, row + 1.0, one, one, (row + 1.0, row + 1.0), (row - 1.0, row + 1.0), row[0] + 1.0, 1e-9)
    except Exception as reason:
        return f"no, {reason!r}"
    return f"yes, compiled in {time.perf_counter() - begin:.1f} s"


def _parts(name: str) -> tuple[str, str, int]:
    """A loop's name or "", a network, a number of samples."""
    *loop, kind, n = name.split(":")
    return "".join(loop), kind, int(n)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.device_profile", description=__doc__)
    parser.add_argument("--cases", nargs="+", default=list(CASES), metavar="[LOOP:]NETWORK:N")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1, help="threads of checks")
    parser.add_argument("--out", type=Path, default=Path(), help="where profile.jsonl is written")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    print(f"one kernel for a step: {kernel(options.device)}", flush=True)
    judges: dict[str, water.Judge] = {}
    for name in options.cases:
        _, kind, _ = _parts(name)
        if kind not in judges:
            judges[kind] = judge_of(kind, options.device)
        told = case(name, judges[kind], options.device, options.jobs)
        with (options.out / "profile.jsonl").open("a") as file:
            file.write(json.dumps(told) + "\n")
        print(json.dumps({key: value for key, value in told.items() if key != "sections"}, indent=1))
        for row in told["sections"]:
            print(*row, sep="\t", flush=True)


if __name__ == "__main__":
    main()

"""Water with deeper networks, proved with an accelerator: `python -m benchmarks proof_device --device cuda`.

The gap is that of the potable samples: those that the bound allows beyond those of the point, by the latter.
Libraries are imported, networks trained and the device is awake before the clock starts; finding the point is
part of the time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

import dovetail as dt
from benchmarks.reference import build
from dovetail.core.arrays import FloatArray
from dovetail_study.experiment import ResultTable
from dovetail_study.problems import networks, water

SEED = 42
DECAY, EPOCHS, BATCH, LEARNT = 0.5, 40, 64, 0.8
"""Of AdamW, on so much of the rows: networks that are made to be proved, and learn as much as others do."""


@dataclass(frozen=True)
class Case:
    """An instance, and how long it may take."""

    network: str
    n: int
    seconds: float
    file: str = ""
    """A reference file; none: trained here."""
    single: bool = True
    """Trained networks are deployed in float32, whose rounding the bound has to allow for, or in float64."""

    @property
    def instance(self) -> str:
        """Where it is from."""
        return self.file or f"trained, float{32 if self.single else 64}"

    def problem(self, data: Path | None) -> dt.Problem:
        """Built, the network trained."""
        if self.file:
            assert data is not None
            return build(dict(np.load(data / "reference" / f"{self.file}.npz", allow_pickle=False)))
        X, labels = water.look_alike(SEED)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        network = trained(self.network, X, labels)
        judge = water.train(
            "2x16", epochs=1, allow_constant=True
        )  # its words on a training are not asked for
        network = network if self.single else network.double()
        return water.Judge(network, judge.training, X, labels, SEED).water(self.n).problem


def trained(kind: str, X: FloatArray, labels: FloatArray) -> nn.Module:
    """A network whose weights were kept small on the way."""
    torch.manual_seed(SEED)
    draw, network = torch.Generator().manual_seed(SEED), networks.build(kind, X.shape[1])
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=DECAY)
    inputs, targets = (torch.as_tensor(array, dtype=torch.float32) for array in (X, labels))
    learnt = torch.randperm(len(inputs), generator=draw)[: int(LEARNT * len(inputs))]
    for _ in range(EPOCHS):
        for rows in learnt[torch.randperm(len(learnt), generator=draw)].split(BATCH):
            logits = network(inputs[rows]).squeeze(1)
            loss = nn.functional.binary_cross_entropy_with_logits(logits, targets[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return network.eval()


CASES = (
    Case("4x32", 400, 60.0, "water_4x32_n400"),
    Case("6x64", 400, 120.0),
    Case("6x64", 400, 120.0, single=False),
    Case("6x128", 100, 60.0, "water_6x128_n100"),
    Case("6x128", 400, 120.0),
)
"""Those of n = 100 are harder: samples get more of the budget, and their sets are larger."""


def cases(data: Path | None, names: set[str]) -> Iterator[Case]:
    """Those of the networks asked for (all, if none is named), files only where there are files."""
    for case in CASES:
        there = not case.file or (data is not None and (data / "reference" / f"{case.file}.npz").exists())
        if there and (not names or case.network in names):
            yield case


def answered(case: Case, data: Path | None, device: str, out: Path | None) -> list[str]:
    """A row of the table; the log is kept in `out`."""
    problem = case.problem(data)
    log_file = None if out is None else out / f"{case.network} {case.n} {case.instance}.log"
    begin = time.perf_counter()
    result = dt.solve(
        problem, time_limit=case.seconds, seed=0, device=device, gap=1e-6, log=False, log_file=log_file
    )
    seconds = time.perf_counter() - begin
    assert result.objective is not None
    least = problem.mip.sense == "min"  # the files count what is not potable
    potable = case.n - result.objective if least else result.objective
    most = case.n if result.bound is None else case.n - result.bound if least else result.bound
    proved = [gain for gain in result.trace.bounds if gain.source == result.bound_source]
    return [
        case.network,
        str(case.n),
        case.instance,
        f"{potable:.0f}",
        f"{most:.0f}",
        f"{100.0 * (most - potable) / potable:.1f}",
        result.bound_source,
        f"{proved[-1].seconds:.0f}" if proved else "–",
        f"{seconds:.0f}",
    ]


def run(data: Path | None, device: str, names: set[str], out: Path | None) -> ResultTable:
    """Every case, one after the other."""
    table = ResultTable(
        "proof_device",
        f"Water on {_name(device)}: how many samples can be potable, at most",
        ["network", "n", "instance", "potable", "at most", "gap %", "proved by", "last gain s", "s"],
        reading=(
            "One process, seed 0; seconds of the wall, finding the point included. 'last gain' is when the "
            "bound rose last."
        ),
    )
    if device == "cuda" and not torch.cuda.is_available():
        table.reading = "No GPU here: nothing was measured."
        return table
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    _wake(device)
    for case in cases(data, names):
        table.rows.append(answered(case, data, device, out))
        print(*table.rows[-1], flush=True)
    return table


def _name(device: str) -> str:
    if device == "cpu":
        return "the CPU"
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"


def _wake(device: str) -> None:
    """Solve something small there: libraries are loaded by a first solve."""
    dt.solve(water.water(60, "2x16").problem, time_limit=8.0, device=device, log=False)

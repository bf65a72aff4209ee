"""One call on a GPU: kernels in variants, then whole solves. Not kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import traceback
from pathlib import Path

import torch

OUT = Path(os.environ.get("OUT", "."))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
N = int(os.environ.get("SHOT_N", "1000000"))
LOG = (OUT / "shot.txt").open("a")
BEGIN = time.perf_counter()


def say(*words: object) -> None:
    line = f"[{time.perf_counter() - BEGIN:6.1f}] " + " ".join(map(str, words))
    print(line, flush=True)
    print(line, file=LOG, flush=True)


def tried(name, work):
    try:
        say(name, work())
    except Exception:
        say(name, "FAILED", traceback.format_exc()[-1500:])


def ms(work, times=5):
    work()
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(times):
        work()
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    return round((time.perf_counter() - begin) / times * 1e3, 3)


def facts():
    import triton

    thp = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text().strip()
    return torch.__version__, triton.__version__, thp, os.cpu_count(), Path("/proc/meminfo").read_text()[:120]


def layers(sizes):
    chance = torch.Generator().manual_seed(0)
    shapes = list(zip(sizes[1:], sizes[:-1]))
    return [
        (
            (torch.randn(a, b, generator=chance) / b**0.5).to(DEVICE),
            0.1 * torch.randn(a, generator=chance).to(DEVICE),
            i < len(shapes) - 1,
        )
        for i, (a, b) in enumerate(shapes)
    ]


def eager(net, u):
    masks, x = [], u
    for weight, bias, rectified in net:
        x = torch.addmm(bias, x, weight.T)
        if rectified:
            x = x.clamp_(min=0.0)
            masks.append(x)
    g = torch.ones_like(x)
    for weight, _, rectified in reversed(net):
        if rectified:
            g = torch.ops.aten.threshold_backward(g, masks.pop(), 0.0)
        g = g @ weight
    return x[:, 0], g


BEST = [1e9, None]


def networks(sizes, variants):
    from dovetail.methods.template_pricing import triton_network as kernel
    from dovetail.methods.template_pricing.padded_network import padded_network

    net = layers(sizes)
    u = torch.randn(N, sizes[0], device=DEVICE)
    v, g = eager(net, u)
    say("network", sizes, "eager float32", ms(lambda: eager(net, u)))
    double = [(w.double(), b.double(), r) for w, b, r in net]
    some = slice(0, 20000)
    v64, g64 = eager(double, u[some].double())
    say("  float32 against float64", float((v[some] - v64).abs().max()), float((g[some] - g64).abs().mean()))
    made = kernel.KernelNetwork(padded_network(net))
    for rows, warps, stages, programs in variants:
        kernel.ROWS, kernel.WARPS, kernel.STAGES, kernel.PROGRAMS = rows, warps, stages, programs
        made.__dict__.pop("_programs", None)

        def work():
            begin = time.perf_counter()
            a, b = made.linearised(u, gradients=True)
            float(a.sum())
            first = time.perf_counter() - begin
            took = ms(lambda: made.linearised(u, gradients=True))
            return (
                took,
                "ms; first",
                round(first, 1),
                "s; off",
                float((a[some] - v64).abs().max()),
                float((b[some] - g64).abs().mean()),
                "values only",
                ms(lambda: made.linearised(u, gradients=False)),
            )

        def told():
            answer = work()
            if answer[5] < 1e-3 and answer[0] < BEST[0]:
                BEST[:] = [answer[0], (rows, warps, stages, programs)]
            return answer

        tried(f"  {rows} rows {warps} warps {stages} stages {programs} programs:", told)
    if BEST[1]:
        kernel.ROWS, kernel.WARPS, kernel.STAGES, kernel.PROGRAMS = BEST[1]
    say("chosen", BEST)


def descents(variants):
    from benchmarks.device_profile import judge_of
    from benchmarks.many_blocks import stated
    from dovetail.methods.template_pricing import triton_descent as kernel
    from dovetail.methods.template_pricing.plan import plan_of
    from dovetail.methods.template_pricing.shard import PricingOptions, Shard, usual_spread

    problem = stated(N, judge_of("2x16", DEVICE)).problem
    (program,), blocks = plan_of(problem).programs, list(problem.blocks)
    shard = Shard(program, blocks, PricingOptions(), DEVICE, usual_spread(program, blocks, DEVICE))
    data, target = shard.data, shard._targets[1]
    n = min(N, 658_456)
    which, start = torch.arange(n, device=DEVICE), torch.zeros(n, data.coordinates, device=DEVICE)
    costs = data.part_costs(which, torch.full((data.sides,), 3.0, device=DEVICE))
    radius = torch.full((1,), 0.4, device=DEVICE).expand(n)
    oracle = shard._oracle
    kept = oracle._descents._call
    oracle._descents._call = None
    with torch.no_grad():
        expected = oracle.descend(which, start, radius, costs, target)
        say(
            "descents step by step",
            ms(lambda: oracle.descend(which, start, radius, costs, target), 2),
            "ms",
            oracle.in_words,
        )
        for rows, warps, precision in variants:
            kernel.ROWS, kernel.WARPS, kernel.PRECISION = rows, warps, precision

            def work():
                oracle._descents._call = kept
                begin = time.perf_counter()
                found = oracle.descend(which, start, radius, costs, target)
                float(found.cost[0])
                first = time.perf_counter() - begin
                took = ms(lambda: oracle.descend(which, start, radius, costs, target))
                a, b = torch.isfinite(found.cost), torch.isfinite(expected.cost)
                both = a & b
                return (
                    took,
                    "ms; first",
                    round(first, 1),
                    "s; met",
                    int(a.sum()),
                    int(b.sum()),
                    "cheaper by",
                    float((expected.cost - found.cost)[both].mean()),
                    oracle.in_words,
                )

            tried(f"  {rows} rows {warps} warps {precision}:", work)


def recorded():
    from dovetail.coupling.dense_forward import Passes, _backward, _forward

    for rows in (500, 1000):
        for dtype in (torch.float64, torch.float32):
            net = [(w.to(dtype), b.to(dtype), r) for w, b, r in layers((9, *[512] * 64, 1))]
            u, one = (
                torch.randn(rows, 9, device=DEVICE, dtype=dtype),
                torch.ones(rows, 1, device=DEVICE, dtype=dtype),
            )
            say(
                "64x512",
                rows,
                "rows",
                dtype,
                "kernel by kernel",
                ms(lambda: _backward(net, one, _forward(net, u)[1]), 10),
            )
            if DEVICE == "cuda":
                passes = Passes(net)
                for _ in range(4):
                    made = passes.recording(u)
                say("  recorded", ms(lambda: (made.forward(u, 1), made.backward(u, one, 1)), 10))


JUDGES = {}


def profiles(cases, jobs):
    from benchmarks import device_profile

    for name in cases:

        def work(name=name):
            kind = name.split(":")[-2]
            if kind not in JUDGES:
                JUDGES[kind] = device_profile.judge_of(kind, DEVICE)
            told = device_profile.case(name, JUDGES[kind], DEVICE, jobs)
            with (OUT / "profile.jsonl").open("a") as file:
                file.write(json.dumps(told) + "\n")
            short = {k: v for k, v in told.items() if k not in ("sections", "training")}
            return (
                json.dumps(short, indent=1)
                + "\n"
                + "\n".join("\t".join(map(str, r)) for r in told["sections"])
            )

        tried(f"profile {name} jobs {jobs}:", work)
        torch.cuda.empty_cache()


def variants():
    """The deep network with fewer fine steps, another last MIP, or all digits; the wide one with fewer starts."""
    import dovetail as dt
    from benchmarks import device_profile
    from benchmarks.many_blocks import stated
    from dovetail.methods.template_pricing import TemplatePricing, networks, oracle, rounds, shard

    def solved(kind, n, **said):
        if kind not in JUDGES:
            JUDGES[kind] = device_profile.judge_of(kind, DEVICE)
        instance = stated(n, JUDGES[kind])
        begin = time.perf_counter()
        result = dt.solve(instance.problem, TemplatePricing(), time_limit=60.0, device=DEVICE, log=False)
        took = time.perf_counter() - begin
        return (
            said,
            round(took, 2),
            "s",
            instance.counts(result).potable,
            result.iterations,
            result.message[-200:],
        )

    deep = int(os.environ.get("SHOT_DEEP", "10000"))
    for fine, least, part, wide in (
        (3, 1.0, 0.25, 512),
        (2, 1.0, 0.25, 512),
        (1, 1.0, 0.25, 512),
        (2, 0.3, 0.0, 512),
        (3, 4.0, 1.0, 512),
        (3, 4.0, 1.0, 9999),
        (3, 1.0, 0.25, 9999),
    ):
        oracle.FINE_STEPS, rounds.CORE_LEAST, rounds.CORE_PART, networks.WIDE = fine, least, part, wide
        tried("64x512", lambda: solved("64x512", deep, fine=fine, least=least, wide=wide))
    oracle.FINE_STEPS, rounds.CORE_LEAST, rounds.CORE_PART, networks.WIDE = 3, 1.0, 0.25, 512
    for kind in ("6x128", "2x16"):
        for cold, warm in (((0.4, 0.12, 1.2), 3), ((0.4, 1.2), 4)):
            shard.COLD, shard.WARM = cold, warm
            tried(kind, lambda: solved(kind, N, cold=cold, warm=warm))
    shard.COLD, shard.WARM = (0.4, 0.12, 1.2, 0.8), 4


def tests():
    files = [
        f"tests/methods/template_pricing/test_{n}.py"
        for n in ("triton_step", "triton_network", "triton_descent", "device_blocks", "method", "confirmed")
    ]
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-n",
            "0",
            "-x",
            *files,
            "tests/coupling/test_dense_forward.py",
        ],
        capture_output=True,
        text=True,
        timeout=100,
    )
    return run.stdout[-1500:] + run.stderr[-500:]


if __name__ == "__main__":
    torch.set_num_threads(1)
    what = sys.argv[1:] or ["facts", "kernels", "profiles", "loops", "large", "tests"]
    if "facts" in what:
        tried("facts", facts)
    if "kernels" in what:
        tried(
            "networks",
            lambda: networks(
                (9, *[128] * 6, 1),
                [
                    (128, 8, 2, 2),
                    (128, 8, 1, 1),
                    (64, 4, 2, 2),
                    (64, 8, 2, 2),
                ],
            ),
        )
    if "profiles" in what:
        profiles(["6x128:1000000", "2x16:1000000"], 1)
    if "large" in what:
        profiles(["2x16:10000000"], 1)
    if "loops" in what:
        profiles(["paper:64x512:500"], 1)
        profiles(["2x16:10000000"], 8)
        profiles(["64x512:10000", "dual-decomposition:64x512:500"], 1)
    if "tests" in what:
        tried("tests", tests)
    say("end")

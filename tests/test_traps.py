"""Traps that reviewers walked into: each one was a wrong claim, a crash or a lost answer once."""

import io
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import torch
from torch import nn

import dovetail as dt

inf = np.inf


def net(features=1, outputs=1, dtype=torch.float64, seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(features, 8), nn.Tanh(), nn.Linear(8, outputs)).to(dtype)


def problem(cost, *rows, **limits):
    return dt.Problem(dt.Mip(cost, *rows, **limits))


# --- claims --------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_a_small_objective_or_a_large_offset_proves_nothing(offset):
    size = 1e-8 if offset == 0.0 else 1.0
    p = problem([0.0, -size], lower=[0.0, -2.0], upper=[1.0, 2.0], offset=offset)
    p.add_predictor(net(), [0], [1])
    result = dt.solve(p, log=False)
    assert result.status == "feasible"
    assert result.value(1) == pytest.approx(net()(torch.ones(1, 1, dtype=torch.float64)).item(), abs=1e-3)


def test_costs_below_an_engine_s_tolerance_count():
    result = dt.solve(problem([-1e-10, 0.0], [[1.0, 1.0]], -inf, 1e9, upper=1e9), log=False)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(-0.1)


@pytest.mark.parametrize("entry", [1e-9, 1e-8, 1e-3])
def test_a_far_limit_is_a_limit(entry):
    p = problem(
        [0.0, 0.0, 1.0, -1000.0, -1000.0],
        [[0, -1, 1, 0, 0], [0, 0, 0, entry, entry], [0, 0, 0, entry, 2 * entry]],
        [0.0, -inf, -inf],
        [inf, 1.0, 1.0],
        lower=[0.0, -inf, -inf, 0.0, 0.0],
        upper=[1.0, inf, inf, inf, inf],
    )
    p.add_predictor(net(), [0], [1])
    assert dt.solve(p, log=False, time_limit=5).status != "unbounded"


@pytest.mark.parametrize("limits", [{}, {"integer": True}, {"lower": -1e30}])
@pytest.mark.parametrize("start", [None, [0.0, 0.0]])
def test_an_unbounded_host_without_predictors(limits, start):
    result = dt.solve(problem([-1.0, 0.0], **limits), start=start, log=False)
    assert (result.status, result.stop_reason) == ("unbounded", "proved")
    assert result.objective is None


def test_unbounded_beside_a_predictor_is_proved():
    p = problem([0.0, 0.0, -1.0], lower=[0.0, -inf, 0.0], upper=[1.0, inf, inf])
    p.add_predictor(net(), [0], [1])
    result = dt.solve(p, log=False)
    assert (result.status, result.stop_reason) == ("unbounded", "proved")
    assert dt.check(p, result.x).within()


def test_a_mip_without_predictors_gets_all_the_time():
    rng = np.random.default_rng(0)
    A = rng.integers(1, 60, (8, 60)).astype(float)
    p = problem(-rng.integers(5, 40, 60), A, np.full(8, -inf), A.sum(axis=1) * 0.4, upper=1.0, integer=True)
    result = dt.solve(p, time_limit=4.0, log=False)
    assert result.stop_reason == "proved" or result.seconds > 3.5


def test_what_is_not_a_number_is_no_class():
    class Root(nn.Module):
        def forward(self, x):
            return torch.sqrt(x - 0.01) + 1.0

    p = problem([1.0, 0.0], lower=0.0, upper=[1.0, 1.0])
    with pytest.raises(dt.PredictorError, match="nan"):
        p.add_predictor(Root(), [0], [1], output_type="classification", threshold=0.0)
    p = problem([1.0, 0.0], lower=[0.1, 0.0], upper=[1.0, 1.0])
    p.add_predictor(Root(), [0], [1], output_type="classification", threshold=0.0)
    assert dt.check(p, [0.0, 0.0]).prediction.amount == inf


def test_the_judge_is_not_blinded_by_an_overflow():
    p = problem([0.0, 0.0, 0.0], [[1e10, -1e10, 0.0], [0.0, 0.0, 1.0]], [-inf, 5.0], [inf, inf], lower=-inf)
    with np.errstate(over="ignore", invalid="ignore"):
        assert not dt.check(p, [1e300, 1e300, 1.0]).within()


@pytest.mark.parametrize("free", [(-inf, inf), (0.0, inf)])
def test_a_column_that_follows_a_free_output(free):
    """max z with z <= 3 y + 1 is bounded by the network alone; HiGHS's tangents must not think otherwise."""
    p = problem(
        [0.01, 0.0, -1.0], [[0.0, -3.0, 1.0]], -inf, 1.0,
        lower=[0.0, free[0], -inf], upper=[4.0, free[1], inf], integer=[True, False, False],
    )  # fmt: skip
    network = net(1)
    with torch.no_grad():
        network[2].bias += 2.0
        best = min(
            0.01 * k - (3.0 * network(torch.full((1, 1), float(k)).double()).item() + 1.0) for k in range(5)
        )
    p.add_predictor(network, [0], [1])
    result = dt.solve(p, "dual-decomposition", log=False)
    assert result.status == "feasible"
    assert best - 1e-6 <= result.objective <= best + 0.1 * abs(best)
    exact = dt.solve(p, log=False)  # few values: a table
    assert exact.status == "optimal"
    assert exact.objective == pytest.approx(best, abs=1e-6)


def test_an_equivalent_model_reaches_the_same_optimum():
    """Cost on y, or on z <= 3 y + 1: the same problem, whatever bounds z has."""
    direct = problem([0.0, 3.0], lower=[0.0, -inf], upper=[1.0, inf], sense="max")
    row = ([[0.0, -3.0, 1.0]], -inf, 0.0)
    through = problem([0.0, 0.0, 1.0], *row, lower=[0.0, -1e3, -1e3], upper=[1.0, 1e3, 1e3], sense="max")
    for p in (direct, through):
        p.add_predictor(net(seed=4), [0], [1])
    found = [dt.solve(p, log=False).objective for p in (direct, through)]
    grid = torch.linspace(0, 1, 1001, dtype=torch.float64)[:, None]
    best = 3.0 * net(seed=4)(grid).max().item()
    assert found == pytest.approx([best, best], abs=1e-2)


# --- predictors ----------------------------------------------------------------------------------


class EnumeratedInputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = net(seed=1), net(seed=2)

    def forward(self, x):
        return 0.5 * torch.sigmoid(self.a(x)) + 0.5 * torch.sigmoid(self.b(x) - 3.0)


def test_a_mixture_of_sigmoids_is_asked_about():
    p = problem([1.0, 1.0], lower=[-2.0, -inf], upper=[2.0, inf])
    with pytest.raises(dt.PredictorError, match="threshold="):
        p.add_predictor(EnumeratedInputs(), [0], [1], output_type="classification")


class OverTheBatch(nn.Module):
    def forward(self, x):
        return (x - x.mean(0)) / (x.std(0) + 1e-5)


@pytest.mark.filterwarnings("ignore:std")
@pytest.mark.parametrize(
    "module",
    [OverTheBatch(), nn.BatchNorm1d(1, track_running_stats=False)],
    ids=["by hand", "BatchNorm1d"],
)
def test_normalising_over_the_batch_is_refused(module):
    p = problem([0.0, 1.0], lower=[0.0, -inf], upper=[1.0, inf])
    with pytest.raises(dt.PredictorError, match="other samples in the batch"):
        p.add_predictor(module, [0], [1])


class InPlace(nn.Module):
    def __init__(self, dtype):
        super().__init__()
        self.inner = net(dtype=dtype)

    def forward(self, x):
        x -= 0.5
        return self.inner(x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_module_that_changes_its_input_in_place(dtype):
    p = problem([0.1, 1.0], lower=[0.0, -inf], upper=[1.0, inf])
    p.add_predictor(InPlace(dtype), [0], [1])
    assert p.blocks[0].description.has_float64_copy
    result = dt.solve(p, log=False)
    assert dt.check(p, result.x).within()
    assert dt.check(p, result.x).precision.amount < 1e-5


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.head = nn.Linear(1, 4).double(), nn.Linear(4, 1)

    def forward(self, x):
        return self.head(torch.tanh(self.trunk(x)).float())


@pytest.mark.filterwarnings("ignore:.*torch.jit.script")
@pytest.mark.parametrize("make", [Mixed, lambda: torch.jit.script(net()), lambda: nn.Identity()])
def test_unusual_modules_work(make):
    p = problem([0.1, 1.0], lower=[-1.0, -inf], upper=[1.0, inf])
    p.add_predictor(make(), [0], [1])
    assert dt.check(p, dt.solve(p, dt.DualDecomposition(iterations=3), log=False).x).within()


class ThroughNumpy(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return torch.as_tensor(np.sin(x.numpy()))


@pytest.mark.parametrize(
    ("module", "said"), [(ThroughNumpy(), "plain function"), (nn.LazyLinear(1), "no shape yet")]
)
def test_modules_without_gradients_are_refused_kindly(module, said):
    p = problem([0.1, 1.0], lower=[-1.0, -inf], upper=[1.0, inf])
    with pytest.raises(dt.PredictorError, match=said):
        p.add_predictor(module, [0], [1])


class Constant(nn.Module):
    def forward(self, x):
        return torch.ones(len(x), 1)


def test_a_constant_without_a_gradient():
    p = problem([1.0, 0.0], lower=[0.0, 0.5], upper=[1.0, 2.0])
    p.add_predictor(Constant(), [0], [1])
    assert dt.solve(p, log=False).objective == pytest.approx(0.0, abs=1e-6)


def simple():
    p = problem([0.1, 1.0], lower=[-1.0, -inf], upper=[1.0, inf])
    network = net(dtype=torch.float32)
    p.add_predictor(network, [0], [1])
    return p, network


def test_gradients_switched_off_by_the_caller():
    p, _ = simple()
    reference = dt.solve(p, log=False)
    with torch.no_grad():
        assert dt.solve(p, log=False).objective == reference.objective
        assert not torch.is_grad_enabled()
        late, _ = simple()
        assert late.blocks[0].description == p.blocks[0].description
    with torch.inference_mode():
        assert dt.solve(p, log=False).objective == reference.objective


def test_a_network_changed_after_it_was_added():
    p, network = simple()
    network.double()
    assert dt.check(p, dt.solve(p, log=False).x).within()
    network[2] = nn.Linear(8, 2).double()
    with pytest.raises(dt.PredictorError, match="changed since it was added"):
        dt.solve(p, log=False)
    with torch.no_grad():
        network[0].weight.fill_(torch.nan)
    with pytest.raises(dt.PredictorError, match="nan"):
        dt.solve(p, log=False)


def test_a_predictor_that_fails_on_the_way_leaves_the_best_point():
    calls = 0

    def tired(X):
        nonlocal calls
        calls += 1
        if calls > 60:
            raise RuntimeError("tired")
        return X[:, :1] ** 2

    p = problem([0.1, 1.0], lower=[-1.0, -inf], upper=[1.0, inf])
    p.add_predictor(tired, [0], [1])
    with pytest.raises(RuntimeError, match="tired") as caught:
        dt.solve(p, log=False)
    assert caught.value.result.x is not None or caught.value.result.status == "error"


def test_one_module_in_train_mode_in_two_threads():
    network = nn.Sequential(nn.Linear(1, 8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 1)).double().train()
    p = problem([0.1, 1.0], lower=[-1.0, -inf], upper=[1.0, inf])
    p.add_predictor(network, [0], [1])
    results = []
    workers = [
        threading.Thread(
            target=lambda: results.append(dt.solve(p, dt.DualDecomposition(iterations=8), log=False))
        )
        for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [result.status for result in results] == ["feasible", "feasible"]
    assert all(part.training for part in network.modules())


# --- time, silence, options ----------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [0.0, 1e-3])
def test_no_time_to_find_the_boxes_is_no_mistake_of_the_model(seconds):
    A = [[1.0, 1.0, 0.0], [1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [-1.0, -1.0, 0.0]]
    p = problem([1.0, 1.0, 1.0], A, np.full(4, -inf), np.ones(4), lower=-inf)
    p.add_predictor(net(2), [0, 1], [2])
    assert dt.solve(p, time_limit=seconds, log=False).stop_reason == "time"
    assert dt.solve(p, time_limit=5.0, log=False).status == "feasible"


def test_a_box_that_is_no_box_is_refused_by_name():
    p = problem([0.0, 1.0], lower=[-1e15, -inf], upper=[1e15, inf], names=["far", "y"])
    p.add_predictor(net(), ["far"], ["y"])
    with pytest.raises(dt.ModelError, match=r"far .* no useful box"):
        dt.solve(p, "dual-decomposition", log=False)


def test_silence_is_silence():
    program = """
import dovetail as dt, numpy as np, torch
torch.manual_seed(0)
mip = dt.Mip([0, 0, 1], [[1, 1, 0]], -np.inf, np.inf, lower=[0, 0, -np.inf], upper=[1, 1, np.inf])
p = dt.Problem(mip)
p.add_predictor(torch.nn.Linear(2, 1), [0, 1], [2])
dt.solve(p, log=False)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert done.stderr == ""


def test_highs_used_before_by_the_caller():
    program = """
import highspy, numpy as np
h = highspy.Highs()
h.setOptionValue("output_flag", False)
h.setOptionValue("threads", 2)
h.addVar(0.0, 1.0)
h.run()
import dovetail as dt
result = dt.solve(dt.Problem(dt.Mip([1.0], lower=0.5, upper=2.0, integer=True)), log=False)
assert result.status == "optimal", result.message
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_agreement_on_a_refused_point_goes_on_and_looks_around():
    network = net(2, 3, torch.float32, seed=1)
    p = problem([1.0, 1.0, 0.0, 0.0, 0.0], lower=[-2.0, -2.0, 0.0, 1.0, 0.0], upper=[2.0, 2.0, 1.0, 1.0, 1.0])
    p.add_predictor(network, [0, 1], [2, 3, 4], output_type="classification")
    assert dt.solve(p, log=False).status == "feasible"


def test_numpy_options_and_a_short_repr():
    p, _ = simple()
    method = dt.DualDecomposition(rho=np.float32(3.0), iterations=np.int64(2))
    result = dt.solve(p, method, log=np.bool_(False), seed=np.int32(0), time_limit=np.float32(5.0))
    assert dt.Result.from_json(result.to_json()).iterations == 2
    assert len(repr(result)) < 200
    log = io.StringIO()
    dt.solve(p, method, log=log)
    assert "status" in log.getvalue()


@pytest.mark.parametrize("columns", [7, -1, 1.0, [True, False], slice(1)])
def test_values_of_columns_that_are_not_there(columns):
    p, _ = simple()
    result = dt.solve(p, dt.DualDecomposition(iterations=1), log=False)
    with pytest.raises(dt.ModelError, match="value()"):
        result.value(columns)
    assert result.value(np.array([0, 1], dtype=object)).shape == (2,)


@pytest.mark.parametrize(
    "make",
    [
        lambda: dt.DualDecomposition(rho=None),
        lambda: dt.DualDecomposition(iterations=2.5),
        lambda: dt.DualDecomposition(mip_gap=float("nan")),
        lambda: dt.DualDecomposition(patience="x"),
        lambda: dt.DualDecomposition(engine="glpk"),
        lambda: dt.DualDecomposition(nn_solver="barrier"),
        lambda: dt.DualDecomposition(nn_solver=dt.LogBarrier),
        lambda: dt.DualDecomposition(penalty=None),
        lambda: dt.BalancedPenalty(factor=float("nan")),
        lambda: dt.Mip([1.0], offset="a"),
        lambda: dt.Mip([1.0], names=5),
        lambda: dt.Mip([1.0, 1.0], names="ab"),
        lambda: dt.Mip([1.0], [[1j]], 0.0, 1.0),
        lambda: dt.read(None),
    ],
)
def test_options_of_the_wrong_kind(make):
    with pytest.raises(dt.DovetailError):
        make()


def test_a_mip_is_read_only():
    mip = dt.Mip([1.0], [[2.0]], 0.0, 1.0)
    with pytest.raises(ValueError, match="read-only"):
        mip.A.data[0] = np.nan


def test_many_blocks_are_added_in_time_that_grows_with_them():
    columns = 4000
    mip = dt.Mip(np.zeros(columns), lower=-1.0, names=[f"c{j}" for j in range(columns)])
    p = dt.Problem(mip)
    counts = {"stages": 0}
    import dovetail.core.problem as module

    before = module._stages

    def counted(*args):
        counts["stages"] += 1
        return before(*args)

    module._stages = counted
    try:
        for k in range(40):
            p.add_predictor(lambda X: X.sum(axis=1), [f"c{3 * k}", f"c{3 * k + 1}"], [f"c{3 * k + 2}"])
    finally:
        module._stages = before
    assert counts["stages"] == 0
    assert len(p.stages) == 1


MPS = """NAME t
ROWS
 N obj
 L c
COLUMNS
 x obj 1 c 1
 y obj 1 c 1
{extra}RHS
 R c 3
ENDATA
"""


def test_a_file_that_highs_only_doubts_is_refused(tmp_path):
    good, bad = tmp_path / "good.mps", tmp_path / "bad.mps"
    good.write_text(MPS.format(extra=""))
    bad.write_text(MPS.format(extra=" x obj 1\n"))
    assert dt.read(good).n_columns == 2
    with pytest.raises(dt.ModelError, match="bad.mps"):
        dt.read(bad)


def test_a_slow_first_mip_step_is_not_the_end():
    """A hard equality knapsack: the first MIP step finds its point only after its slice."""
    rng = np.random.default_rng(3)
    A = rng.integers(1, 100, (3, 24)).astype(float)
    right = A @ rng.integers(0, 2, 24)
    side = np.hstack([A, np.zeros((3, 1))])
    p = problem(np.append(np.zeros(24), 1.0), side, right, right, lower=np.append(np.zeros(24), -inf),
                upper=np.append(np.ones(24), inf), integer=np.append(np.ones(24, bool), False))  # fmt: skip
    p.add_predictor(net(24), np.arange(24), [24])
    start = time.perf_counter()
    result = dt.solve(p, time_limit=6.0, log=False)
    assert result.x is not None or time.perf_counter() - start > 4.5

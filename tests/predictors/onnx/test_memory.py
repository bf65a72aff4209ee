"""ONNX files that ask for more than there is: refused before it is allocated, whatever the operator."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from onnx import helper, numpy_helper

import dovetail as dt
from dovetail.core.files import FileLimits, Meter
from dovetail.predictors.onnx.file import LIMITS
from dovetail.predictors.onnx.memory import room
from tests.conftest import volume
from tests.robustness.damage import model, whole

node = helper.make_node
SMALL = dt.FileLimits(elements=1 << 16)


def saved(tmp_path, proto):
    path = tmp_path / "net.onnx"
    path.write_bytes(proto if isinstance(proto, bytes) else proto.SerializeToString())
    return path


def summed(nodes, last, constants, axes=(1,)):
    """A network that ends in the sum of something large."""
    return model(
        [*nodes, node("ReduceSum", [last, "axes"], ["y"], keepdims=0)], {**constants, "axes": whole(*axes)}
    )


def constant_sum(nodes, last, constants):
    """A network that is its input times the sum of something large that does not depend on it."""
    end = [node("ReduceSum", [last], ["s"], keepdims=0), node("Mul", ["x", "s"], ["y"])]
    return model([*nodes, *end], constants)


def doubling(operator, steps=36, start="x", **attributes):
    """v = operator(v, v), again and again: a few bytes each time, twice as much each time."""
    names = [start, *(f"v{k}" for k in range(steps))]
    return [node(operator, [a, a], [b], **attributes) for a, b in itertools.pairwise(names)]


def chained(operator, more, steps, **attributes):
    first = node("Unsqueeze", ["x", "two"], ["v0"])
    return [first, *(node(operator, [f"v{k}", *more], [f"v{k + 1}"], **attributes) for k in range(steps))]


float_ = np.float32
IMAGE = [node("Reshape", ["x", "image"], ["i"])]
IMAGES = {"image": whole(-1, 1, 2, 2)}
BOMBS = {
    "Concat": summed(doubling("Concat", axis=1), "v35", {}),
    "Concat of constants": constant_sum(
        doubling("Concat", start="c", axis=0), "v35", {"c": np.ones(1, float_)}
    ),
    "Tile": summed(chained("Tile", ["t"], 36), "v36", {"two": whole(2), "t": whole(1, 2, 1)}, (1, 2)),
    "Tile at once": summed(
        chained("Tile", ["t"], 1), "v1", {"two": whole(2), "t": whole(1, 1 << 40, 1)}, (1, 2)
    ),
    "Expand": summed(
        [*chained("Expand", ["t"], 1), node("Exp", ["v1"], ["e"])],
        "e",
        {"two": whole(2), "t": whole(1, 1, 1 << 26)},
        (1, 2),
    ),
    "Pad": summed(
        chained("Pad", ["t"], 1), "v1", {"two": whole(2), "t": whole(0, 0, 0, 0, 0, 1 << 40)}, (1, 2)
    ),
    "Pad again": summed(
        chained("Pad", ["t"], 20, mode="edge"),
        "v20",
        {"two": whole(2), "t": whole(0, 0, 1 << 14, 0, 0, 1 << 14)},
        (1, 2),
    ),
    "Gather": summed(
        chained("Gather", ["t"], 9, axis=1),
        "v9",
        {"two": whole(2), "t": np.zeros((10, 10), np.int64)},
        (1, 2),
    ),
    "ConstantOfShape": constant_sum(
        [node("ConstantOfShape", ["t"], ["c"])], "c", {"t": whole(1 << 20, 1 << 20)}
    ),
    "Range": constant_sum(
        [node("Range", ["a", "b", "c"], ["r"])], "r", {"a": float_(0), "b": float_(1e15), "c": float_(1)}
    ),
    "outer product": constant_sum(
        [node("MatMul", ["a", "b"], ["c"])],
        "c",
        {"a": np.ones((1 << 15, 1), float_), "b": np.ones((1, 1 << 15), float_)},
    ),
    "Gemm": constant_sum(
        [node("Gemm", ["a", "a"], ["c"], transB=1)], "c", {"a": np.ones((1 << 15, 1), float_)}
    ),
    "batched MatMul": constant_sum(
        [node("MatMul", ["a", "b"], ["c"])],
        "c",
        {"a": np.ones((999, 1, 8, 8), float_), "b": np.ones((1, 999, 8, 8), float_)},
    ),
    "Einsum": summed(
        [node("Einsum", ["x", "c", "c", "c"], ["e"], equation="nk,a,b,c->nkabc")],
        "e",
        {"c": np.ones(3000, float_)},
        (1, 2, 3, 4),
    ),
    "broadcasting": constant_sum(
        [node("Add", ["a", "b"], ["c"])],
        "c",
        {"a": np.ones((1 << 15, 1), float_), "b": np.ones((1, 1 << 15), float_)},
    ),
    "Where": constant_sum(
        [node("Where", ["m", "a", "b"], ["c"])],
        "c",
        {"m": np.ones((1, 1), bool), "a": np.ones((1 << 15, 1), float_), "b": np.ones((1, 1 << 15), float_)},
    ),
    "Max of many": constant_sum(
        [node("Max", ["a", "b"], ["c"])],
        "c",
        {"a": np.ones((1 << 15, 1), float_), "b": np.ones((1, 1 << 15), float_)},
    ),
    "Conv with padding": summed(
        [*IMAGE, node("Conv", ["i", "K"], ["c"], pads=[1 << 15] * 4)],
        "c",
        {**IMAGES, "K": np.ones((1, 1, 1, 1), float_)},
        (1, 2, 3),
    ),
    "Conv with many channels": summed(
        [*IMAGE, node("Conv", ["i", "K"], ["c"], pads=[300] * 4)],
        "c",
        {**IMAGES, "K": np.ones((999, 1, 1, 1), float_)},
        (1, 2, 3),
    ),
    "ConvTranspose": summed(
        [*IMAGE, node("ConvTranspose", ["i", "K"], ["c"], strides=[1 << 20] * 2)],
        "c",
        {**IMAGES, "K": np.ones((1, 1, 1, 1), float_)},
        (1, 2, 3),
    ),
    "MaxPool with padding": summed(
        [*IMAGE, node("MaxPool", ["i"], ["c"], kernel_shape=[1, 1], pads=[1 << 15] * 4)],
        "c",
        IMAGES,
        (1, 2, 3),
    ),
    "LSTM of many steps": model(
        [
            node("Unsqueeze", ["x", "zero"], ["a"]),
            node("Tile", ["a", "t"], ["b"]),
            node("LSTM", ["b", "W", "R"], ["", "h"]),
            node("Squeeze", ["h", "zero"], ["y"]),
        ],
        {
            "zero": whole(0),
            "t": whole(1 << 22, 1, 1),
            "W": np.ones((1, 4, 4), float_),
            "R": np.ones((1, 4, 1), float_),
        },
    ),
    "LSTM of many states": model(
        [
            node("Unsqueeze", ["x", "zero"], ["a"]),
            node("ConstantOfShape", ["w"], ["W"]),
            node("ConstantOfShape", ["r"], ["R"]),
            node("LSTM", ["a", "W", "R"], ["", "h"]),
            node("Squeeze", ["h", "zero"], ["y"]),
        ],
        {"zero": whole(0), "w": whole(1, 4 << 20, 4), "r": whole(1, 4 << 20, 1 << 20)},
    ),
    "a long shape": constant_sum(
        [
            node("ConstantOfShape", ["t"], ["c"]),
            node("Cast", ["c"], ["d"], to=7),
            node("ConstantOfShape", ["d"], ["e"]),
        ],
        "e",
        {"t": whole(1 << 20)},
    ),
    "long work": constant_sum(
        [node("ConstantOfShape", ["t"], ["c"]), node("MatMul", ["c", "c"], ["d"])],
        "d",
        {"t": whole(1 << 13, 1 << 13)},
    ),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_growth_is_seen_before_it_happens(kind, tmp_path):
    path = saved(tmp_path, BOMBS[kind])
    assert path.stat().st_size < 1 << 20
    with pytest.raises(dt.PredictorError, match=r"limit|asked for"):
        dt.load_predictor(path, limits=SMALL)


CHILD = """
import resource, sys
import dovetail as dt
dt.load_predictor(sys.argv[2])
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
elements = int(sys.argv[3])
most = size + 16 * elements + (1 << 26)
resource.setrlimit(resource.RLIMIT_AS, (most, most))
try:
    dt.load_predictor(sys.argv[1], limits=dt.FileLimits(elements=elements))
except dt.PredictorError as error:
    print(error)
"""


@volume("a process; what counts elements is tested above")
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="hardware: only Linux limits memory")
def test_the_limit_of_elements_is_a_limit_of_memory(tmp_path):
    """36 doublings are 274 GB; they are refused within 16 bytes for every number that is allowed."""
    elements = LIMITS.elements
    path = saved(tmp_path, BOMBS["Concat"])
    assert path.stat().st_size < 3000
    good = tmp_path / "good.onnx"
    good.write_bytes(model([node("Relu", ["x"], ["y"])], {}).SerializeToString())
    command = [sys.executable, "-c", CHILD, path, good, str(elements)]
    one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # a thread's stack would count as memory
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | one)
    assert "elements; the limit is" in done.stdout, done.stderr
    assert "limits=dovetail.FileLimits(elements=...)" in done.stdout


def test_more_rows_can_be_far_more(tmp_path):
    """A graph of n rows may make n x n x ... of them: what three rows showed is not all."""
    power = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "first"], ["n"]),
        node("Concat", ["n"] * 4, ["sizes"], axis=0),
        node("Expand", ["one", "sizes"], ["e"]),
        node("Exp", ["e"], ["c"]),
        node("ReduceSum", ["c"], ["t"], keepdims=0),
        node("Mul", ["t", "zero"], ["z"]),
        node("Add", ["x", "z"], ["y"]),
    ]
    constants = {"first": whole(0), "one": np.ones((1, 1, 1, 1), np.float32), "zero": np.float32(0)}
    predictor = dt.load_predictor(saved(tmp_path, model(power, constants)), limits=SMALL)
    assert np.array_equal(predictor.predict(np.ones((5, 4))), np.ones((5, 4)))
    with pytest.raises(dt.PredictorError, match=r"with 40 samples: its graph computes \d+ elements"):
        predictor.predict(np.ones((40, 4)))
    assert np.array_equal(predictor.predict(np.ones((5, 4))), np.ones((5, 4)))


def test_a_limit_can_be_raised_and_lowered(tmp_path):
    wide = model(
        [node("MatMul", ["x", "W"], ["h"]), node("Relu", ["h"], ["r"]), node("MatMul", ["r", "V"], ["y"])],
        {"W": np.ones((4, 9000), np.float32), "V": np.ones((9000, 1), np.float32)},
    )
    path = saved(tmp_path, wide)
    with pytest.raises(dt.PredictorError, match="elements; the limit is 10,000 elements"):
        dt.load_predictor(path, limits=dt.FileLimits(elements=10_000))
    with pytest.raises(dt.PredictorError, match="bytes; the limit is 10,000 bytes"):
        dt.load_predictor(path, limits=dt.FileLimits(bytes=10_000))
    predictor = dt.load_predictor(path, limits=dt.FileLimits(elements=1 << 20))
    big = predictor.predict(
        np.ones((5000, 4))
    )  # rows are the caller's choice: they raise the limit with them
    assert np.array_equal(big, np.full((5000, 1), 36_000.0))


def test_functions_that_call_functions(tmp_path):
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]

    def function(name, nodes):
        return helper.make_function("own", name, ["a"], ["b"], nodes, opsets)

    big = numpy_helper.from_array(np.zeros(100_000, np.float32), "t")
    body = [
        node("Constant", [], ["c"], value=big),
        node("ReduceSum", ["c"], ["s"], keepdims=0),
        node("Add", ["a", "s"], ["b"]),
    ]
    names = ["x", *(f"v{k}" for k in range(500))]
    calls = [node("f", [a], [b], domain="own") for a, b in itertools.pairwise(names)]
    proto = model([*calls, node("Identity", ["v499"], ["y"])], {}, functions=[function("f", body)])
    with pytest.raises(dt.PredictorError, match="its weights have"):
        dt.load_predictor(saved(tmp_path, proto), limits=dt.FileLimits(bytes=10_000_000))


# --- what is measured ------------------------------------------------------------------------------


def spent(action):
    meter = Meter("it", FileLimits(1 << 40, 1 << 40, 60.0), "load_predictor", dt.PredictorError)
    with room(meter):
        result = action()
    return meter.elements, result


def test_views_are_free_and_what_is_made_is_counted():
    x = torch.ones(3, 4)
    assert spent(lambda: x.reshape(4, 3).t().unsqueeze(0).expand(9, 3, 4))[0] == 0
    assert spent(lambda: x + x)[0] == 12
    assert spent(lambda: torch.cat([x, x, x]))[0] == 36
    assert spent(lambda: x.repeat(5, 1))[0] == 60
    assert spent(lambda: x @ torch.ones(4, 7))[0] == 28 + 21  # the ones are made here too
    assert spent(lambda: x[x > 0])[0] == 12  # the mask; how many it picks is not known before
    assert spent(lambda: torch.full((5, 5), 2.0))[0] == 25


def test_what_is_done_again_is_counted_again_and_nothing_is_taken_for_another():
    x = torch.ones(3, 4)
    assert spent(lambda: [x + x for _ in range(5)])[0] == 60
    assert spent(lambda: [x.repeat(count, 1) for count in (5, 6, 5)])[0] == 60 + 72 + 60
    assert spent(lambda: [part.sum(0) for part in (x, x.t())])[0] == 4 + 3
    assert spent(lambda: [x.sum(axis) for axis in (0, 1)])[0] == 4 + 3


def test_results_are_the_same_under_a_meter():
    rng = torch.Generator().manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv1d(1, 3, 2), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(9, 2)
    )
    x = torch.rand(5, 1, 4, generator=rng)
    assert torch.equal(spent(lambda: net(x))[1], net(x))
    assert torch.equal(spent(lambda: torch.vmap(lambda row: row.cumsum(0) * 2)(x))[1], x.cumsum(1) * 2)


def test_what_would_take_too_long_is_not_begun():
    meter = Meter("it", FileLimits(1 << 40, 1 << 40, 5.0), "load_predictor", dt.PredictorError)
    a = torch.ones(1, 1).expand(1 << 13, 1 << 13)
    with pytest.raises(dt.PredictorError, match="5.0 seconds"), room(meter):
        a @ a

"""Files as they should be, and ways of damaging them."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from typing import NamedTuple

import highspy
import numpy as np
import onnx
from onnx import helper, numpy_helper

import dovetail as dt
from tests.robustness import bad

Chance = np.random.Generator

HUGE = [
    b"1e400", b"-1e308", b"99999999999999999999", b"nan", b"inf", b"-inf", b"1e-320", b"0x7f", b"2147483648",
    b"1e", b"-", b"9" * 400, b"1e99999999999", b"\xff\xfe", b"0", b"-1", b"1,5", b"NaN", b"Infinity", b"1e16",
]  # fmt: skip
WHOLE = [
    0, -1, 1, 2, 3, 7, 255, 1 << 16, 65537, 1 << 24, 1 << 30, (1 << 31) - 1, 1 << 31, 1 << 40,
    1 << 62, -(1 << 63),
]  # fmt: skip


class Damage(NamedTuple):
    kind: str
    content: bytes
    """A file as it should not be."""


# --- whole files -----------------------------------------------------------------------------------


def random_host(rng: Chance) -> highspy.Highs:
    """A small program with bounds, integers and rows of all kinds."""
    columns, rows = int(rng.integers(1, 7)), int(rng.integers(1, 6))
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    limits = [
        (0, np.inf),
        (-np.inf, np.inf),
        (-3, 5),
        (0, 1),
        (2, 2),
        (-np.inf, 4),
        (1, np.inf),
        (-1.5, 2.25),
    ]
    for j in range(columns):
        whole = rng.random() < 0.4
        low, high = limits[rng.integers(7 if whole else 8)]
        highs.addVar(low, high)
        highs.changeColCost(j, float(rng.choice([0.0, 1.0, -2.5, 1e-7, 3e9, rng.normal()])))
        if whole:
            highs.changeColIntegrality(j, highspy.HighsVarType.kInteger)
        highs.passColName(j, ["x{}", "Var_{}", "a.b({})", "e{}"][rng.integers(4)].format(j))
    sides = [(-np.inf, 3.0), (1.0, np.inf), (2.0, 2.0), (-1.0, 4.0)]
    for i in range(rows):
        low, high = sides[rng.integers(4)]
        places = rng.permutation(columns)[: rng.integers(1, columns + 1)].astype(np.int32)
        values = rng.choice([1.0, -1.0, 2.5, 1e-3, 1e6, 1.0 / 3.0], len(places))
        highs.addRow(low, high, len(places), places, values)
        highs.passRowName(i, f"r{i}")
    highs.changeObjectiveOffset(float(rng.choice([0.0, 7.5, -2.0])))
    if rng.random() < 0.5:
        highs.changeObjectiveSense(highspy.ObjSense.kMaximize)
    return highs


def written(rng: Chance, kind: str, folder: str) -> bytes:
    """A random program as HiGHS writes it."""
    path = f"{folder}/written.{kind}"
    random_host(rng).writeModel(path)
    with open(path, "rb") as file:
        return file.read()


def mps(rng: Chance, folder: str) -> bytes:
    return bad.MPS.encode() if rng.random() < 0.2 else written(rng, "mps", folder)


def packed(rng: Chance, folder: str) -> bytes:
    return gzip.compress(mps(rng, folder), mtime=0)


def lp(rng: Chance, folder: str) -> bytes:
    return bad.LP.encode() if rng.random() < 0.2 else written(rng, "lp", folder)


def results(rng: Chance, folder: str) -> bytes:
    """A result as `to_json` writes it, with a few numbers changed."""
    record = json.loads(RESULT)
    record["objective"] = float(rng.normal())
    record["names"] = ["a", "b", "c"] if rng.random() < 0.5 else None
    return json.dumps(record).encode()


RESULT = dt.solve(bad.problem(), dt.DualDecomposition(iterations=2), log=False).to_json()


def network(rng: Chance, folder: str) -> bytes:
    """A small ONNX file of one of several kinds."""
    makers = [dense, shaped, images, recurrent, computed, calling]
    return bytes(makers[rng.integers(len(makers))](rng).SerializeToString())


def model(
    nodes: list[onnx.NodeProto], constants: dict[str, np.ndarray], inputs: int = 4, **more
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", inputs])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8, **more)


def weights(rng: Chance, *shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype(np.float32)


def whole(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def dense(rng: Chance) -> onnx.ModelProto:
    node = helper.make_node
    return model(
        [
            node("Gemm", ["x", "W", "b"], ["h"], transB=1),
            node("Relu", ["h"], ["r"]),
            node("MatMul", ["r", "V"], ["s"]),
            node("Sigmoid", ["s"], ["y"]),
        ],
        {"W": weights(rng, 5, 4), "b": weights(rng, 5), "V": weights(rng, 5, 2)},
    )


def shaped(rng: Chance) -> onnx.ModelProto:
    node = helper.make_node
    return model(
        [
            node("Reshape", ["x", "square"], ["a"]),
            node("Concat", ["a", "a"], ["b"], axis=1),
            node("Tile", ["b", "times"], ["c"]),
            node("Pad", ["c", "pads"], ["d"]),
            node("Slice", ["d", "first", "last", "axes"], ["e"]),
            node("Expand", ["e", "wide"], ["f"]),
            node("Gather", ["f", "chosen"], ["g"], axis=2),
            node("Transpose", ["g"], ["h"], perm=[0, 2, 1]),
            node("Flatten", ["h"], ["i"]),
            node("ReduceSum", ["i", "one"], ["y"]),
        ],
        {
            "square": whole(-1, 2, 2), "times": whole(1, 2, 1), "pads": whole(0, 0, 1, 0, 0, 1),
            "first": whole(0), "last": whole(3), "axes": whole(2), "wide": whole(1, 8, 3),
            "chosen": whole(0, 1, 2, 1), "one": whole(1),
        },
    )  # fmt: skip


def images(rng: Chance) -> onnx.ModelProto:
    node = helper.make_node
    return model(
        [
            node("Reshape", ["x", "image"], ["a"]),
            node("Conv", ["a", "K"], ["b"], kernel_shape=[2, 2], pads=[1, 1, 1, 1], strides=[1, 1]),
            node("MaxPool", ["b"], ["c"], kernel_shape=[2, 2], strides=[1, 1]),
            node("ConvTranspose", ["c", "T"], ["d"], strides=[2, 2]),
            node("AveragePool", ["d"], ["e"], kernel_shape=[2, 2], strides=[2, 2]),
            node("GlobalAveragePool", ["e"], ["f"]),
            node("Flatten", ["f"], ["y"]),
        ],
        {"image": whole(-1, 1, 2, 2), "K": weights(rng, 2, 1, 2, 2), "T": weights(rng, 2, 3, 2, 2)},
    )


def recurrent(rng: Chance) -> onnx.ModelProto:
    node = helper.make_node
    return model(
        [
            node("Reshape", ["x", "steps"], ["a"]),
            node("Transpose", ["a"], ["b"], perm=[1, 0, 2]),
            node("LSTM", ["b", "W", "R"], ["", "h"], hidden_size=3),
            node("Squeeze", ["h", "zero"], ["y"]),
        ],
        {
            "steps": whole(-1, 2, 2),
            "W": weights(rng, 1, 12, 2),
            "R": weights(rng, 1, 12, 3),
            "zero": whole(0),
        },
    )


def computed(rng: Chance) -> onnx.ModelProto:
    """Shapes that are computed from constants and from the number of rows."""
    node = helper.make_node
    return model(
        [
            node("Shape", ["x"], ["s"]),
            node("Gather", ["s", "first"], ["n"], axis=0),
            node("Concat", ["n", "width"], ["both"], axis=0),
            node("ConstantOfShape", ["both"], ["z"]),
            node("Range", ["from", "to", "by"], ["r"]),
            node("Cast", ["r"], ["q"], to=1),
            node("Add", ["x", "q"], ["a"]),
            node("Einsum", ["a", "M"], ["e"], equation="nk,kj->nj"),
            node("Add", ["e", "z"], ["y"]),
        ],
        {
            "first": whole(0), "width": whole(4), "from": np.array(0), "to": np.array(4), "by": np.array(1),
            "M": weights(rng, 4, 4),
        },
    )  # fmt: skip


def calling(rng: Chance) -> onnx.ModelProto:
    """A function that calls a function."""
    node, opsets = helper.make_node, [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    inner = helper.make_function("own", "half", ["a"], ["b"], [node("Add", ["a", "a"], ["b"])], opsets)
    body = [node("half", ["a"], ["m"], domain="own"), node("half", ["m"], ["b"], domain="own")]
    outer = helper.make_function("own", "twice", ["a"], ["b"], body, opsets)
    return model([node("twice", ["x"], ["y"], domain="own")], {}, functions=[inner, outer])


# --- damage ----------------------------------------------------------------------------------------


def span(content: bytes, rng: Chance) -> tuple[int, int]:
    """A stretch, short ones as often as long ones."""
    start = int(rng.integers(0, len(content)))
    length = int(2.0 ** rng.uniform(0.0, np.log2(max(2, len(content) / 4))))
    return start, min(len(content), start + length)


def flipped(content: bytes, rng: Chance) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        changed[rng.integers(len(changed))] ^= 1 << rng.integers(8)
    return bytes(changed)


def deleted(content: bytes, rng: Chance) -> bytes:
    start, stop = span(content, rng)
    return content[:start] + content[stop:]


def inserted(content: bytes, rng: Chance) -> bytes:
    place = int(rng.integers(len(content) + 1))
    return content[:place] + rng.bytes(int(rng.integers(1, 20))) + content[place:]


def repeated(content: bytes, rng: Chance) -> bytes:
    start, stop = span(content, rng)
    return content[:stop] + content[start:stop] * int(rng.integers(1, 4)) + content[stop:]


def swapped(content: bytes, rng: Chance) -> bytes:
    """Two words exchanged; in a binary file, two stretches."""
    words = list(re.finditer(rb"\S+", content))
    if len(words) < 2:
        return deleted(content, rng)
    a, b = sorted(rng.choice(len(words), 2, replace=False))
    first, second = words[a], words[b]
    return b"".join(
        [
            content[: first.start()],
            second[0],
            content[first.end() : second.start()],
            first[0],
            content[second.end() :],
        ]
    )


def enlarged(content: bytes, rng: Chance) -> bytes:
    """A number exchanged for one that is too large, or none at all."""
    numbers = list(re.finditer(rb"[-+]?[0-9][0-9.e+-]*", content))
    if not numbers:
        return inserted(content, rng)
    found = numbers[rng.integers(len(numbers))]
    return content[: found.start()] + HUGE[rng.integers(len(HUGE))] + content[found.end() :]


def resized(content: bytes, rng: Chance) -> bytes:
    """A whole number of an ONNX graph (a size, an axis, a stride) exchanged."""
    parsed = onnx.load_from_string(content)
    new = WHOLE[rng.integers(len(WHOLE))]
    listed = [t for t in parsed.graph.initializer if t.data_type == onnx.TensorProto.INT64]
    attributes = [a for n in parsed.graph.node for a in n.attribute if a.type in (a.INT, a.INTS)]
    if rng.random() < 0.5 and listed:
        tensor = listed[rng.integers(len(listed))]
        values = numpy_helper.to_array(tensor).copy()
        values.reshape(-1)[rng.integers(values.size)] = new
        tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    elif rng.random() < 0.5 and attributes:
        attribute = attributes[rng.integers(len(attributes))]
        if attribute.type == attribute.INTS and len(attribute.ints):
            attribute.ints[rng.integers(len(attribute.ints))] = new
        elif attribute.type == attribute.INT:
            attribute.i = new
    elif parsed.graph.initializer:
        tensor = parsed.graph.initializer[rng.integers(len(parsed.graph.initializer))]
        tensor.dims[:] = [abs(new) % (1 << 63)] * int(rng.integers(1, 4))
    return bytes(parsed.SerializeToString())


def rewired(content: bytes, rng: Chance) -> bytes:
    """A node of an ONNX graph with another operator or input, or twice over."""
    parsed = onnx.load_from_string(content)
    nodes = parsed.graph.node
    node, other = nodes[rng.integers(len(nodes))], nodes[rng.integers(len(nodes))]
    choice = rng.integers(3)
    if choice == 0:
        node.op_type = str(
            rng.choice([other.op_type, "Concat", "Tile", "Expand", "MatMul", "Loop", "Range", "Pad"])
        )
    elif choice == 1 and len(node.input):
        node.input[rng.integers(len(node.input))] = str(other.output[0] if len(other.output) else "x")
    else:
        for k in range(int(rng.integers(2, 40))):
            fed = helper.make_node("Concat", [f"more{k - 1}" if k else "x"] * 2, [f"more{k}"], axis=1)
            nodes.insert(k, fed)
        node.input[0] = f"more{k}"
    return bytes(parsed.SerializeToString())


def cut(content: bytes, rng: Chance) -> bytes:
    return content[: int(rng.integers(len(content)))]


Way = Callable[[bytes, Chance], bytes]
ANY: tuple[Way, ...] = (flipped, deleted, inserted, repeated, swapped, enlarged, cut)
SOURCES: dict[str, tuple[Callable[[Chance, str], bytes], tuple[Way, ...]]] = {
    ".mps": (mps, ANY),
    ".mps.gz": (packed, (flipped, deleted, inserted, repeated, cut)),
    ".lp": (lp, ANY),
    ".onnx": (network, (*ANY, resized, resized, resized, rewired, rewired)),
    ".json": (results, ANY),
}


def damaged(suffix: str, seed: int, folder: str) -> tuple[bytes, Damage]:
    """A whole file and the same damaged, one or (rarely) two ways."""
    rng = np.random.default_rng([seed, sum(suffix.encode())])
    make, ways = SOURCES[suffix]
    original = make(rng, folder)
    way = ways[rng.integers(len(ways))]
    content, kind = way(original, rng), way.__name__
    if way is not cut and content and rng.random() < 0.2:
        content, kind = flipped(content, rng), f"{kind}, flipped"
    return original, Damage(kind, content)

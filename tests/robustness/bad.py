"""Bad inputs, by the part of dovetail they are given to: each names what its error must speak of.

A case is a label, the words one of which the message must have, and the call. Whoever adds an argument
adds its bad values here.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import highspy
import numpy as np
import scipy.sparse as sp
import torch
from torch import nn

import dovetail as dt

nan, inf = math.nan, math.inf


class Case(NamedTuple):
    label: str
    words: tuple[str, ...]
    call: Callable[[], object]


def mip(**changes: Any) -> dt.Mip:
    """Three columns, two rows."""
    given: dict[str, Any] = {
        "cost": [1.0, 1.0, 1.0], "A": [[1.0, 1.0, 0.0], [0.0, 1.0, 0.0]], "row_lower": [-4.0, -inf],
        "row_upper": [4.0, 9.0], "lower": [-1.0, -1.0, -inf], "upper": [1.0, 1.0, inf],
    }  # fmt: skip
    return dt.Mip(**{**given, **changes})


def problem() -> dt.Problem:
    torch.manual_seed(0)
    made = dt.Problem(mip())
    made.add_predictor(nn.Linear(2, 1), [0, 1], [2])
    return made


def result() -> dt.Result:
    return dt.solve(problem(), dt.DualDecomposition(iterations=1), log=False)


def each(what: str, values: list[Any], call: Callable[[Any], object], *words: str) -> Iterator[Case]:
    """One case per bad value of one argument."""
    for k, value in enumerate(values):
        yield Case(
            f"{what}[{k}] {repr(value)[:40]}", words or (what.split(".")[-1],), lambda v=value: call(v)
        )


# --- Mip -------------------------------------------------------------------------------------------

NO_NUMBERS: list[Any] = ["x", ["a", "b", "c"], {}, object(), [1j, 1, 1], [[1.0], [1.0, 2.0]], [10**400] * 3]


def corrupt(kind: str, part: str, place: int, value: int) -> Any:
    """A sparse matrix whose arrays do not fit each other any more."""
    matrix = sp.csr_array(np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 2.0]])).asformat(kind)
    getattr(matrix, part)[place] = value
    return matrix


def cut_data(kind: str, part: str) -> Any:
    matrix = sp.csr_array(np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 2.0]])).asformat(kind)
    setattr(matrix, part, getattr(matrix, part)[:-1])
    return matrix


def matrices() -> list[Any]:
    return [
        [[1.0, 1.0, 0.0], [1.0]], [[1.0, 1.0]], [1.0], 3.0, "x", {}, object(), [["a", "b", "c"]],
        [[nan, 0, 0]], [[inf, 0, 0]], [[1e16, 0, 0]], [[1e-12, 0, 0]], [[1j, 0, 0]], np.ones((2, 3, 1)),
        [[None, 1, 1]], [[10**400, 1, 1]], np.ones((2, 4)), sp.csr_array(np.ones((2, 4))),
        corrupt("csr", "indices", 0, -1), corrupt("csr", "indices", 0, 3),
        corrupt("csr", "indices", 2, 2**30),
        corrupt("csr", "indptr", 1, 9), corrupt("csr", "indptr", 1, -2),
        corrupt("csr", "indptr", 2, 1 << 30),
        corrupt("csr", "indptr", 0, 1), corrupt("csc", "indices", 0, -7), corrupt("csc", "indices", 1, 2),
        corrupt("csc", "indptr", 1, 99), corrupt("coo", "row", 0, 2), corrupt("coo", "row", 0, -1),
        corrupt("coo", "col", 1, 77), cut_data("csr", "data"), cut_data("csr", "indices"),
        cut_data("csc", "data"), cut_data("csr", "indptr"), corrupt("bsr", "indices", 0, 50),
    ]  # fmt: skip


def of_mip() -> Iterator[Case]:
    yield from each(
        "Mip.cost", [None, *NO_NUMBERS, [], 5.0, [nan, 1, 1], [inf, 1, 1], [[1.0, 1.0]]], lambda v: dt.Mip(v)
    )
    yield from each("Mip.A", matrices(), lambda v: mip(A=v), "A ", "row_lower", "row_upper")
    for side in ("row_lower", "row_upper"):
        bad = [None, *NO_NUMBERS, [1.0], [1.0] * 3, [nan, 0.0], [[0.0, 0.0]]]
        yield from each(f"Mip.{side}", bad, lambda v, side=side: mip(**{side: v}), side, "row[0]")
    for side in ("lower", "upper"):
        bad = [None, *NO_NUMBERS, [1.0], [1.0] * 4, [nan, 0.0, 0.0], [[0.0] * 3]]
        yield from each(f"Mip.{side}", bad, lambda v, side=side: mip(**{side: v}), side, "x[0]")
    yield from each(
        "Mip interval",
        [(2.0, 1.0), (inf, inf), (-inf, -inf), (nan, 1.0), (1.0, nan)],
        lambda v: mip(lower=v[0], upper=v[1]),
        "x[0]",
        "x[2]",
    )
    yield from each(
        "Mip row interval",
        [(2.0, 1.0), (inf, inf), (-inf, -inf), (nan, 1.0)],
        lambda v: mip(row_lower=v[0], row_upper=v[1]),
        "row[0]",
    )
    yield from each(
        "Mip.integer",
        [
            "x",
            2,
            [True],
            [True] * 4,
            [0.5, 0, 0],
            [[True] * 3],
            [[1], [1, 2]],
            nan,
            None,
            object(),
            [2, 0, 0],
            "semi",
        ],
        lambda v: mip(integer=v),
    )
    yield from each(
        "Mip.sense",
        ["minimise", None, 1, ["min"], np.array(["min", "max"]), "MIN", b"min"],
        lambda v: mip(sense=v),
    )
    yield from each(
        "Mip.offset", [nan, inf, "x", None, 1j, [1.0, 2.0], 10**400, object()], lambda v: mip(offset=v)
    )
    for names, size in (("names", 3), ("row_names", 2)):
        bad = [["a"] * size, ["a"], ["a"] * 9, "abc"[:size], 5, 1.5, object()]
        yield from each(f"Mip.{names}", bad, lambda v, names=names: mip(**{names: v}), "names")


# --- Problem and its predictors --------------------------------------------------------------------


class Chance(nn.Module):
    def forward(self, x):
        return torch.rand(len(x), 1, dtype=x.dtype)


def spoilt() -> nn.Module:
    module = nn.Linear(2, 1)
    with torch.no_grad():
        module.weight.fill_(nan)
    return module


def predictors() -> list[Any]:
    return [
        None, 3, "relu", object(), [], {}, torch.zeros(3), nn.Linear, Path("/nowhere/net.onnx"),
        "nowhere.pt",
        nn.Linear(3, 1), nn.Linear(2, 2), spoilt(), Chance(), nn.LazyLinear(1), b"net.onnx", 1.5, (1, 2),
        lambda X: None, lambda X: X[:1, :1], lambda X: "x", lambda X: X[:, :1] * nan, lambda X: 1 / 0,
        lambda X: [[1.0], [2.0, 3.0]], lambda: None, lambda X: X.mean(0, keepdims=True).repeat(len(X),
        0)[:, :1],
        lambda X: X[:, :1] * 1j, nn.Sequential(nn.Linear(2, 4), nn.Linear(5, 1)), np.ones((2, 1)),
    ]  # fmt: skip


COLUMNS: list[Any] = [
    None, [], [[]], 99, [0, 99], [-1, 0], [0.5, 1.0], ["nope", "no"], [[0], [0, 1]], np.zeros((1, 1, 2),
    int),
    [True, False], [nan, 0.0], object(), {"a": 1}, slice(0, 2), [None, 0], [2**70, 0], [1j, 0],
]  # fmt: skip


def of_problem() -> Iterator[Case]:
    yield from each(
        "Problem",
        [None, 3, "x", [], object(), {}, np.ones(3), nn.Linear(1, 1), dt.Mip],
        lambda v: dt.Problem(v),
        "Problem takes",
    )

    def tie(predictor: Any = None, inputs: Any = (0, 1), outputs: Any = (2,), **more: Any) -> object:
        chosen = nn.Linear(2, 1) if predictor is None else predictor
        return dt.Problem(mip()).add_predictor(chosen, inputs, outputs, **more)

    for k, bad in enumerate(predictors()):
        yield Case(
            f"add_predictor.predictor[{k}]",
            ("",),
            lambda v=bad: dt.Problem(mip()).add_predictor(v, [0, 1], [2]),
        )
    yield from each("add_predictor.inputs", COLUMNS, lambda v: tie(inputs=v), "inputs")
    yield from each("add_predictor.outputs", COLUMNS, lambda v: tie(outputs=v), "outputs")
    yield from each(
        "add_predictor shapes",
        [([0, 1], [[2], [2]]), ([[0, 1], [0, 1]], [2]), ([0, 1], [2, 0])],
        lambda v: tie(inputs=v[0], outputs=v[1]),
        "outputs",
        "samples",
    )
    yield Case("a column tied twice", ("x[2]",), lambda: problem().add_predictor(nn.Linear(1, 1), [0], [2]))
    yield Case("a cycle", ("cycle",), lambda: tie(inputs=[0, 2]))
    yield Case("a longer cycle", ("cycle",), lambda: problem().add_predictor(nn.Linear(1, 1), [2], [0]))
    yield from each(
        "add_predictor.output_type",
        ["x", None, 1, ["regression"], np.array([1, 2]), "Regression"],
        lambda v: tie(output_type=v),
    )
    yield from each(
        "add_predictor.epsilon", [-1.0, nan, inf, "x", None, 1j, [1.0], True], lambda v: tie(epsilon=v)
    )
    yield from each(
        "add_predictor.threshold", [nan, inf, "x", 1j, [0.5], True, 0.5], lambda v: tie(threshold=v)
    )
    yield from each("add_predictor.name", [3, ["a"], 1.5, b"x", object()], lambda v: tie(name=v))
    yield Case(
        "a name twice", ("block0",), lambda: problem().add_predictor(nn.Linear(1, 1), [0], [1], name="block0")
    )
    yield from each(
        "add_predictor.data",
        [
            "x",
            [],
            [[1.0]],
            [[1.0, 2.0, 3.0]],
            [[nan, nan]],
            np.ones((1, 2, 2)),
            [["a", "b"]],
            object(),
            [[1.0], [1.0, 2.0]],
        ],
        lambda v: tie(data=v),
    )
    yield from each("remove_predictor", ["x", None, 3, [1]], lambda v: problem().remove_predictor(v), "block")


# --- solve, check and results ----------------------------------------------------------------------


def of_solve() -> Iterator[Case]:
    def solve(**more: Any) -> object:
        return dt.solve(problem(), log=more.pop("log", False), **more)

    yield from each(
        "solve.model",
        [None, 3, "x", [], object(), mip(), nn.Linear(1, 1), {}, np.ones(3)],
        lambda v: dt.solve(v, log=False),
        "model",
        "Problem",
    )
    yield from each(
        "solve.method",
        ["nope", "", None, 3, object(), dt.Auto, dt.ProjectedGradient(), [], "AUTO", nn.ReLU()],
        lambda v: solve(method=v),
        "method",
    )
    yield from each(
        "solve.time_limit", ["x", nan, -1.0, -inf, [1.0], 1j, {}, True, "5"], lambda v: solve(time_limit=v)
    )
    yield from each("solve.seed", [-1, 1.5, "x", None, nan, True, [1], 1j], lambda v: solve(seed=v))
    yield from each("solve.n_jobs", [0, -2, 1.5, "x", None, True, [1], nan], lambda v: solve(n_jobs=v))
    yield from each(
        "solve.device", ["gpu0", "cuda:99", "", [], 1.5, object(), "tpu"], lambda v: solve(device=v)
    )
    yield from each("solve.callback", [3, "x", [], object()], lambda v: solve(callback=v))
    yield from each("solve.progress", [3, "x", [], object()], lambda v: solve(progress=v))
    yield from each("solve.log", ["x", 3, b"", None, [], object()], lambda v: solve(log=v))
    yield from each("solve.target", ["x", nan, inf, True, [1.0], 1j], lambda v: solve(target=v))
    files = ["", 3, b"", [], object(), "/dev/null/solve.log", "/", "a\0b"]
    yield from each("solve.log_file", files, lambda v: solve(log_file=v))
    yield from each("solve.checkpoint", files, lambda v: solve(checkpoint=v))
    starts = ["x", [1.0], [nan] * 3, [inf] * 3, np.zeros((1, 3)), np.zeros((3, 1)), np.zeros((3, 3)),
              [[0.0], [0.0, 1.0]],
              {}, object(), [1j] * 3, ["a", "b", "c"], np.zeros((1, 1, 3)), [0.0] * 4]  # fmt: skip
    yield from each("solve.start", starts, lambda v: solve(start=v))
    for shape in ((1, 3), (3, 1), (4,), (2,)):
        yield Case(
            f"solve.start Result of shape {shape}",
            ("start",),
            lambda s=shape: solve(start=dataclasses.replace(result(), x=np.zeros(s))),
        )
    points = [None, "x", [1.0], [0.0] * 4, np.zeros((1, 3)), np.zeros((3, 1)), {}, object(),
              [1j] * 3, ["a"] * 3,
              [[0.0], [0.0, 1.0]], [10**400] * 3]  # fmt: skip
    yield from each("check.x", points, lambda v: dt.check(problem(), v), "x ")
    yield from each(
        "check.problem", [None, 3, "x", mip(), object()], lambda v: dt.check(v, [0.0] * 3), "model"
    )
    columns = [7, -1, 1.0, [True, False], slice(1), "x", [[0], [1, 2]], None, object(), 2**70, nan]
    yield from each("Result.value", columns, lambda v: result().value(v), "value()")
    empty = dataclasses.replace(result(), x=None)
    yield Case("Result.value without a point", ("no solution",), lambda: empty.value(0))
    yield from each("FileLimits.bytes", [0, -1, 1.5, "x", nan, True], lambda v: dt.FileLimits(bytes=v))
    yield from each("FileLimits.elements", [0, -1, 1.5, "x", nan, True], lambda v: dt.FileLimits(elements=v))
    yield from each("FileLimits.seconds", [0.0, -1, "x", nan, True, [1]], lambda v: dt.FileLimits(seconds=v))
    yield from each(
        "register_predictor", [None, 3, "x", []], lambda v: dt.register_predictor(v, v), "register_predictor"
    )


OPTIONS = (
    dt.DualDecomposition,
    dt.SingleStepGradient,
    dt.BigM,
    dt.Neighbourhood,
    dt.SequentialLinear,
    dt.IntegerLocalSearch,
    dt.Auto,
    dt.ProjectedGradient,
    dt.LogBarrier,
    dt.BalancedPenalty,
    dt.IncreasingPenalty,
    dt.FixedPenalty,
)


def of_options() -> Iterator[Case]:
    """Every field of every method and part, with values that nothing can be."""
    for kind in OPTIONS:
        for item in dataclasses.fields(kind):
            if item.init:
                for bad in (object(), "nonsense", [], nan, 1j, b"x"):
                    yield Case(
                        f"{kind.__name__}({item.name}={repr(bad)[:20]})",
                        (item.name,),
                        lambda k=kind, n=item.name, v=bad: k(**{n: v}),
                    )


# --- models of other tools -------------------------------------------------------------------------


def of_drop_in() -> Iterator[Case]:
    def model() -> tuple[highspy.Highs, Any]:
        made = highspy.Highs()
        made.setOptionValue("output_flag", False)
        return made, made.addVariables(3, lb=-1.0, ub=1.0)

    def tie(predictor: Any = None, inputs: Any = None, outputs: Any = None, **more: Any) -> object:
        made, x = model()
        into = [x[0], x[1]] if inputs is None else inputs
        out = [x[2]] if outputs is None else outputs
        return dt.add_predictor_constr(
            made, nn.Linear(2, 1) if predictor is None else predictor, into, out, **more
        )

    yield from each(
        "add_predictor_constr.model",
        [None, 3, "x", object(), mip(), []],
        lambda v: dt.add_predictor_constr(v, nn.Linear(1, 1), [0], [1]),
        "model",
        "Problem",
    )
    for k, bad in enumerate(predictors()):
        if bad is not None:
            yield Case(f"add_predictor_constr.predictor[{k}]", ("",), lambda v=bad: tie(v))
    strangers = ["nope", [object()], [3.5], [None], [], [[]], 3.5, object(), {}]
    yield from each("add_predictor_constr.inputs", strangers, lambda v: tie(inputs=v), "")
    yield from each("add_predictor_constr.outputs", strangers, lambda v: tie(outputs=v), "")
    yield from each(
        "add_predictor_constr.output_type", ["x", 1, ["regression"]], lambda v: tie(output_type=v)
    )
    yield from each("add_predictor_constr.epsilon", [-1.0, nan, "x"], lambda v: tie(epsilon=v))
    yield from each("add_predictor_constr.threshold", [nan, "x", 0.5], lambda v: tie(threshold=v))


# --- files and results as text ---------------------------------------------------------------------

MPS = """NAME t
ROWS
 N obj
 L c
 G d
COLUMNS
 x obj 1 c 1
 y obj 1 c 1
 y d 1
RHS
 R c 3
RANGES
 R d 2
BOUNDS
 UP B x 4
ENDATA
"""
BAD_MPS = [
    ("x obj 1", "x obj nan"), ("x obj 1", "x obj inf"), ("x obj 1", "x obj abc"), ("x obj 1", "x obj 1e5x"),
    ("x obj 1", "x obj 0x10"), ("x obj 1", "x obj 1,5"), ("x obj 1", "x obj 1.2.3"),
    ("x obj 1", "x obj --1"),
    ("x obj 1", "x obj 1e"), ("x obj 1", "x obj 1e999"), ("R c 3", "R c nan"), ("R c 3", "R c abc"),
    ("R c 3", "R q 3"), ("R c 3", "R c 3\n R c 4"), ("R c 3", "R c 3\n S d 4"), ("R c 3", "R"),
    ("R d 2", "R d nan"), ("R d 2", "R d inf"), ("R d 2", "R q 2"), ("UP B x 4", "UP B x nan"),
    ("UP B x 4", "UP B x abc"), ("UP B x 4", "UP B z 4"), ("UP B x 4", "ZZ B x 4"), ("UP B x 4", "UP B x"),
    ("UP B x 4", "UP B x 4\n UP B x 5"), ("UP B x 4", "UP B x -4"), ("UP B x 4", "UP B x 4\n UP C y 5"),
    ("y d 1", "y q 1"), ("y d 1", "y c 1"), ("y d 1", "y d"), ("y d 1", "y"), ("y d 1", "x d 1"),
    ("y d 1", "y d 1 c"), (" G d", " G c"), (" G d", " Q d"), (" G d", " G"), ("ENDATA\n", ""),
    ("ENDATA", "ENDAT"), ("ENDATA", "endata"), ("ENDATA\n", "ENDATA\nROWS\n L q\n"),
    ("RHS\n", "RHS\n R d 1\nRHS\n"),
    ("COLUMNS\n", ""), ("ROWS\n", ""), ("ROWS", "ROSW"), ("COLUMNS", "COLUMMS"), ("BOUNDS", "BOUNDZ"),
    ("NAME t", "garbage"), ("NAME t", "NAME t\nOBJSENSE\n BANANA"), ("NAME t", "NAME t\nOBJSENSE BANANA"),
    ("NAME t", "NAME t\nNAME u"), ("ENDATA", "QUADOBJ\n x x 2\nENDATA"), ("ENDATA", "SOS\n S1 s\nENDATA"),
    ("y d 1", "M1 'MARKER' 'INTORG'\n y d 1"), ("y d 1", "M1 'MARKER' 'INTEND'\n y d 1"),
    ("y d 1", "M1 'MARKER' 'BANANA'\n y d 1"), ("y d 1", "M1 MARKER INTORG\n y d 1"), ("y d 1", "y d\0 1"),
    ("RHS\n R c 3\n", "ROWS\n L e\n"), ("x obj", "\x01 obj"), ("R c 3", "R c 3 d"),
]  # fmt: skip
LP = """maximize
 obj: 3 a + 2 b - c + 7
subject to
 cap: a + b + c <= 10
 mix: a - b >= 1
bounds
 a <= 5
 c free
general
 a
end
"""
BAD_LP = [
    ("3 a", "nan a"), ("3 a", "inf a"), ("3 a", "1e999 a"), ("3 a", "1d5 a"), ("3 a", "0x10 a"),
    ("3 a", "1.2.3 a"), ("3 a", "1,5 a"), ("3 a", "1e a"), ("3 a", "3 3 a"), ("3 a", "3 a + 2 a"),
    ("3 a", "a b"),
    ("+ 7", "+ 7 +"), ("+ 7", "+ nan"), ("+ 7", "+ 7 + 8"), ("3 a", "a ^ 2"), ("3 a", "3 * a"),
    ("3 a", "[ a * a ] / 2"),
    ("a - b >= 1", "a - b >= nan"), ("a - b >= 1", "a - b >= 3 a >= 1"), ("a - b >= 1", "a - b + 3 >= 1"),
    ("a - b >= 1", "a - b + inf c >= 1"), ("a - b >= 1", "nan a >= 1"), ("a - b >= 1", "a - b >= b"),
    ("a - b >= 1", "1 <= a - b <= 5"), ("a - b >= 1", "a - b > = 1"), ("a - b >= 1", "a - b"),
    ("a - b >= 1", ">= 1"),
    ("a - b >= 1", "a - b >= "), ("a - b >= 1", "a - a >= 1"), ("mix:", "cap:"), ("mix:", "mix::"),
    ("a - b >= 1", "3 >= 1"),
    ("a <= 5", "a <= nan"), ("a <= 5", "a <= abc"), ("a <= 5", "a <= 5 <= 6"), ("a <= 5", "5 a <= 3"),
    ("a <= 5", "a <= -5"),
    ("a <= 5", "inf <= a"), ("a <= 5", "a <= 5\n a <= 6"), ("a <= 5", "6 <= a <= 5"), ("a <= 5", "a < 5"),
    ("a <= 5", "a < = 5"), ("a <= 5", "a"), ("a <= 5", "free <= 5"), ("end\n", ""), ("end", "en"),
    ("end", "end\nbounds\n b <= 1"),
    ("general\n", "bounds\n b <= 1\ngeneral\n"), ("subject to", "subject"), ("maximize\n", ""),
    ("maximize", "garbage\nmaximize"),
    ("bounds", "boundz"), ("general", "genera"), ("general\n a", "general\n 3"),
    ("general\n a", "general\n q"), ("general", "binary"),
    ("end", "sos\n s1: S1:: a:1 b:2\nend"), ("general", "semi-continuous"), ("cap", "c\0p"),
    ("cap", "\x02"),
    ("subject to\n", "subject to\nmaximize\n obj: a\n"),
    ("bounds", "lazy constraints\n z: a + b <= 4\nbounds"),
    ("general\n a", "general\n a + b"), ("maximize", "max min"),
]  # fmt: skip


def of_files(folder: Path) -> Iterator[Case]:
    for kind, text, edits in (("mps", MPS, BAD_MPS), ("lp", LP, BAD_LP)):
        for k, (old, new) in enumerate(edits):
            assert old in text
            path = folder / f"bad{k}.{kind}"
            path.write_text(text.replace(old, new, 1))
            yield Case(f"read {kind}: {old!r} -> {new!r}", (path.name,), lambda p=path: dt.read(p))
    (folder / "empty.mps").write_text("")
    (folder / "empty.lp").write_text("")
    (folder / "no.mps.gz").write_bytes(b"\x1f\x8b and no more")
    (folder / "binary.mps").write_bytes(bytes(range(256)))
    (folder / "latin.lp").write_bytes(LP.replace("cap", "caf\xe9").encode("latin-1"))
    (folder / "folder.mps").mkdir()
    paths: list[Any] = [None, 3, 1.5, [], {}, object(), b"x.mps", "", ".", "x\0.mps",
                        "nowhere.mps", "model.txt", "plant",
                        folder, folder / "folder.mps", folder / "empty.mps",
                        folder / "empty.lp", folder / "no.mps.gz",
                        folder / "binary.mps", folder / "latin.lp"]  # fmt: skip
    yield from each("read.path", paths, dt.read, "")
    good = folder / "good.mps"
    good.write_text(MPS)
    yield from each("read.limits", [3, "x", {}, [1], dt.FileLimits], lambda v: dt.read(good, limits=v))
    for more in ({"bytes": 10}, {"elements": 3}, {"seconds": 1e-9}):
        yield Case(
            f"read within {more}", ("FileLimits",), lambda m=more: dt.read(good, limits=dt.FileLimits(**m))
        )
    for suffix in (".pt", ".pth", ".onnx", ".skops", ".safetensors", ".pkl", ".joblib", ".pt2", ".txt", ""):
        path = folder / f"net{suffix}"
        path.write_bytes(b"neither weights nor a network")
        yield Case(f"load_predictor garbage{suffix}", ("net",), lambda p=path: dt.load_predictor(p))
    paths = [
        None,
        3,
        1.5,
        [],
        {},
        object(),
        b"x.pt",
        "",
        ".",
        "x\0.pt",
        "nowhere.pt",
        folder,
        folder / "folder.mps",
    ]
    yield from each("load_predictor.path", paths, dt.load_predictor, "")
    torch.save(nn.Linear(2, 1).state_dict(), folder / "weights.pt")
    bad = [nn.Linear(3, 1), 3, "x", object(), nn.Linear]
    yield from each(
        "load_predictor.module",
        bad,
        lambda v: dt.load_predictor(folder / "weights.pt", v),
        "module",
        "weights",
    )
    yield from each(
        "load_predictor.limits", [3, "x", {}], lambda v: dt.load_predictor(folder / "weights.pt", limits=v)
    )
    yield Case(
        "weights within 10 bytes",
        ("FileLimits",),
        lambda: dt.load_predictor(folder / "weights.pt", nn.Linear(2, 1), limits=dt.FileLimits(bytes=10)),
    )


def of_json() -> Iterator[Case]:
    """Every part of a result exchanged for what it cannot be, or left out."""
    whole = json.loads(result().to_json())
    wrong: list[Any] = [{}, "nonsense", 10**400, True, [[]], [[1.0], [1.0, 2.0]], -1.5, None]
    allowed = {
        "objective": (-1.5, None), "bound": (-1.5, None), "residual": (-1.5, None), "seconds": (-1.5,),
        "x": (None,),
        "violation": (None,), "multipliers": (None,), "names": (None,), "method": ("nonsense",),
        "trace": ({},),
        "iterations": (10**400,), "message": ("nonsense",), "profile": ({},), "outside": ({},),
        "written": (None,), "engine": ("nonsense",), "source": ("nonsense",), "bound_source": ("nonsense",),
        "evaluations": (10**400,), "facts": (None,), "settings": (None,), "allowed_gap": (None,),
        "work": (None,), "bound_error": (None,), "conflict": (None,),
        "constraints": (None,),
    }  # fmt: skip
    younger = (
        "outside", "written", "engine", "source", "bound_source", "evaluations", "hints", "failures",
        "incumbents", "bounds", "turns", "facts", "settings", "allowed_gap", "work", "bound_error",
        "conflict", "constraints", "alternatives",
    )  # fmt: skip
    for key in whole:
        for bad in wrong:
            if not any(type(bad) is type(ok) and bad == ok for ok in allowed.get(key, ())):
                text = json.dumps({**whole, key: bad})
                yield Case(
                    f"from_json: {key} = {repr(bad)[:20]}",
                    ("to_json", "format"),
                    lambda t=text: dt.Result.from_json(t),
                )
        if key not in younger:  # than the format
            text = json.dumps({k: v for k, v in whole.items() if k != key})
            yield Case(f"from_json without {key}", (key, "format"), lambda t=text: dt.Result.from_json(t))
    deep = ["[" * 100_000, '{"a":' * 100_000, '{"format": 1, "x": ' + "[" * 5000 + "]" * 5000 + "}"]
    texts: list[Any] = [
        None,
        3,
        [],
        {},
        object(),
        "",
        "null",
        "3",
        "[]",
        "{}",
        '"x"',
        "nan",
        "{",
        *deep,
        b"\xff\xfe",
        "\0",
    ]
    yield from each("from_json.text", texts, dt.Result.from_json, "to_json", "ends in the middle")


# --- templates and sweeps --------------------------------------------------------------------------

NO_DATA: list[Any] = ["x", ["a", "b"], {}, object(), [1j, 1.0], [[1.0], [1.0, 2.0]], [10**400] * 2, [1.0] * 3]
"""No numbers for the two blocks of a template."""


def of_templates() -> Iterator[Case]:
    def template(count: Any = 2, families: Any = None, **more: Any) -> object:
        given = {"a": dt.Family(upper=1.0), "b": dt.Family(width=3)} if families is None else families
        return dt.Problem(mip(names=["p", "q", "r"])).add_template(count, given, **more)

    yield from each("Problem.sense", ["most", 1, ["min"], b"min"], lambda v: dt.Problem(sense=v))
    yield from each("template.count", [None, 0, -1, 2.5, "2", True, [2], nan], lambda v: template(v))
    families = [{}, [], 3, "ab", {1: dt.Family()}, {"a": 3}, {"a": dt.Family}, {"a": None}, {"": dt.Family()}]
    yield from each(
        "template.families", [*families, {"a[0]": dt.Family()}], lambda v: template(families=v), "famil"
    )
    yield from each("template taken", [{"p": dt.Family()}], lambda v: template(families=v), "'p'")
    yield from each("template.name", [None, 3, ["a"], b"a"], lambda v: template(name=v), "name")
    for part in ("lower", "upper", "cost", "fixed"):
        bad = [*NO_DATA, nan, [nan, 1.0], np.ones((2, 2, 2)), np.ones((3, 2))]
        yield from each(
            f"Family.{part}", bad, lambda v, p=part: template(families={"a": dt.Family(**{p: v})}), "family a"
        )
    yield from each(
        "Family.integer", [None, 2, "x", [True]], lambda v: template(families={"a": dt.Family(integer=v)})
    )
    yield from each(
        "Family.width", [0, -1, 1.5, "2", True], lambda v: template(families={"a": dt.Family(width=v)})
    )
    for kind in ("rows", "coupling"):
        bad = [
            None,
            3,
            [3],
            [None],
            [dt.FamilyRow],
            [dt.FamilyRow(None)],
            [dt.FamilyRow([1.0])],
            [dt.FamilyRow({})],
        ]
        yield from each(f"template.{kind}", bad, lambda v, k=kind: template(**{k: v}), kind, "row")
        numbers = [*NO_DATA, None, nan, inf, [1.0, nan], 1e-12, 1e16, np.ones((2, 2, 2))]
        for values in numbers:
            row = dt.FamilyRow({"a": values})
            label = f"FamilyRow of {kind} {repr(values)[:40]}"
            yield Case(label, ("coefficient of a",), lambda r=row, k=kind: template(**{k: [r]}))
        for side in ("lower", "upper"):
            for k, values in enumerate([*NO_DATA, None, nan, [[nan]]]):
                row = dt.FamilyRow({"a": 1.0}, **{side: values})
                label = f"FamilyRow.{side} of {kind} [{k}]"
                yield Case(label, (f"of row {kind[:3]}",), lambda r=row, k=kind: template(**{k: [r]}))
    strangers = ["s", 99, -1, 0.5, None, ("a", "b"), "p[0]"]
    yield from each(
        "coupling column",
        strangers,
        lambda v: template(coupling=[dt.FamilyRow({"a": 1.0, v: 1.0})]),
        "coupling0",
    )
    yield from each("families asked for", ["c", 3, (), ("a", "c"), None], lambda v: template()[v], "famil")


def of_sweep() -> Iterator[Case]:
    from dovetail.testing.problems import busy

    def sweep(build: Any = busy, grid: Any = None, **more: Any) -> object:
        return dt.sweep(build, {"n": [2]} if grid is None else grid, **{"log": False, **more})

    yield from each("sweep.build", [None, 3, "busy", lambda n: None, object()], lambda v: sweep(v))
    grids = [3, "n", {}, [], {"n": []}, {"n": 2}, {"n": "ab"}, [3], [{1: 2}], {"n": [nan]}, {"n": [object()]}]
    grids += [
        {"n": [1j]},
        {"n": [b"x"]},
        {"n": [1, 1]},
        {"m": [1]},
        {"objective": [1]},
        {"n": [{1: 2}]},
        [None],
    ]
    yield from each("sweep.grid", grids, lambda v: sweep(grid=v))
    yield from each("sweep.out", [3, 1.5, ["a"], "/dev/null/rows.jsonl", "/"], lambda v: sweep(out=v))
    yield from each("sweep.n_jobs", [0, -2, 1.5, "2", True, None], lambda v: sweep(n_jobs=v))
    yield from each("sweep.cluster", ["local", 3, object(), ""], lambda v: sweep(cluster=v))
    yield from each("sweep.log", ["x.log", 3, None], lambda v: sweep(log=v))
    yield from each("sweep.keep_results", [None, 3, "x"], lambda v: sweep(keep_results=v))


def all_cases(folder: Path) -> list[Case]:
    """All of them; files are written to the folder."""
    return [
        *of_mip(),
        *of_problem(),
        *of_solve(),
        *of_options(),
        *of_drop_in(),
        *of_files(folder),
        *of_json(),
        *of_templates(),
        *of_sweep(),
    ]

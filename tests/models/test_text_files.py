"""Text files of models: legal ones are read as HiGHS reads them, all others are refused."""

import gzip
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import highspy
import numpy as np
import pyscipopt
import pytest

import dovetail as dt
from dovetail.models.highs import as_mip
from tests.conftest import FULL
from tests.robustness import bad
from tests.robustness.damage import damaged, random_host

MODELS = 400 if FULL else 40
CUT = 40 if FULL else 3


def by_highs(path):
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(str(path)) == highspy.HighsStatus.kOk
    return as_mip(highs)


def assert_same(a, b):
    assert (a.sense, a.offset, a.names) == (b.sense, b.offset, b.names)
    for part in ("cost", "lower", "upper", "row_lower", "row_upper", "integer"):
        assert np.array_equal(getattr(a, part), getattr(b, part)), part
    assert np.array_equal(a.A.toarray(), b.A.toarray())


@pytest.mark.parametrize("suffix", [".mps", ".lp", ".mps.gz", ".lp.gz"])
def test_what_highs_writes_is_read(suffix, tmp_path):
    rng = np.random.default_rng(sum(suffix.encode()))
    for _ in range(MODELS):
        plain, path = tmp_path / f"plain{suffix.removesuffix('.gz')}", tmp_path / f"model{suffix}"
        random_host(rng).writeModel(str(plain))
        content = plain.read_bytes()
        path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
        assert_same(dt.read(path), by_highs(plain))


@pytest.mark.parametrize("suffix", [".mps", ".lp"])
def test_every_cut_is_refused(suffix, tmp_path):
    """Whatever the place: a file without its last line is another file, or none."""
    rng = np.random.default_rng(7)
    for k in range(CUT):
        path = tmp_path / f"model{suffix}"
        random_host(rng).writeModel(str(path))
        content = {".mps": bad.MPS, ".lp": bad.LP}[suffix].encode() if k == 0 else path.read_bytes()
        for place in range(0, len(content.rstrip()), 1 if k == 0 or FULL else 11):
            path.write_bytes(content[:place] + (b"\n" if place % 2 else b""))
            with pytest.raises(dt.ModelError, match="model"):
                dt.read(path)


FREE = """* a comment
NAME          plant   FREE
OBJSENSE
    MAX
ROWS
 N cost
 L cap
 G need
 E mix
 N other
COLUMNS
 MARKER 'MARKER' 'INTORG'
 a cost 3 cap 1
 a need 1
 MARKER2 'MARKER' 'INTEND'
 b cost -2.5E0 cap +1.
 b mix .5
 c mix -1 other 4
RHS
 RHS cap 10 need 1
 RHS cost -7
RANGES
 RNG cap 4 mix -2
BOUNDS
 UP BND a 5
 MI BND b
 UP BND b 6
 FR BND c
ENDATA
* the end
"""

FIXED = """NAME          plant
ROWS
 N  COST
 L  THE ROW
 G  LIM 2
COLUMNS
    THE COL   COST               1.0   THE ROW            1.0
    THE COL   LIM 2              1.0
    OTHER     COST               2.0   THE ROW            1.0
RHS
    RHS       THE ROW            4.0   LIM 2              1.0
BOUNDS
 UP BND       THE COL            4.0
ENDATA
"""

LEGAL_MPS = {
    "another order": bad.MPS.replace("RHS\n R c 3\n", "").replace("ENDATA", "RHS\n R c 3\nENDATA"),
    "no names of sets": bad.MPS.replace(" R c", " c").replace("UP B x", "UP x"),
    "objsense on its line": "NAME\nOBJSENSE MAX\n" + bad.MPS.split("\n", 1)[1],
    "no name": bad.MPS.split("\n", 1)[1],
    "windows": bad.MPS.replace("\n", "\r\n"),
    "tabs": bad.MPS.replace(" ", "\t"),
    "no last line end": bad.MPS.rstrip(),
    "blank lines": bad.MPS.replace("\n", "\n\n"),
    "bounds of all kinds": bad.MPS.replace(" UP B x 4", " LO B x -inf\n UP B x 1e30\n FX B y 2"),
    "binary and integer bounds": bad.MPS.replace(" UP B x 4", " BV B x\n LI B y 1\n UI B y 5"),
    "a bare bound with a number": bad.MPS.replace(" UP B x 4", " MI B x 0\n PL B y 0"),
    "a right side without limit": bad.MPS.replace("R c 3", "R c 1e30"),
    "no right sides": bad.MPS.replace(" R c 3\n", ""),
    "free": FREE,
}  # fmt: skip

LEGAL_LP = {
    "comments": bad.LP.replace("subject to", "\\ what must hold\nsubject to \\ here"),
    "capitals": bad.LP.replace("maximize", "MAXIMIZE").replace("end", "END").replace("bounds", "Bounds"),
    "st": bad.LP.replace("subject to", "st"),
    "s.t.": bad.LP.replace("subject to", "s.t."),
    "such that": bad.LP.replace("subject to", "such that"),
    "no labels": bad.LP.replace("obj:", "").replace("cap:", "").replace("mix:", ""),
    "glued": bad.LP.replace("3 a + 2 b - c + 7", "3a+2b-c+7"),
    "two signs": bad.LP.replace("3 a + 2 b", "- - 3 a + - 2 b"),
    "a row over three lines": bad.LP.replace("a + b + c <= 10", "a\n + b\n + c\n <= 10"),
    "everything in one line": bad.LP.replace("maximize\n obj", "maximize obj"),
    "binaries": bad.LP.replace("end", "binary\n b\nend"),
    "generals in a line": bad.LP.replace("general\n a", "generals\n a b"),
    "bounds of all kinds": bad.LP.replace(" a <= 5\n", " -3 <= a <= 5\n 2 >= b\n -inf <= b\n"),
    "fixed": bad.LP.replace(" a <= 5\n", " a = 3\n b >= -infinity\n"),
    "no bounds": bad.LP.replace("bounds\n a <= 5\n c free\n", ""),
    "no objective": bad.LP.replace(" 3 a + 2 b - c + 7", ""),
    "exponents": bad.LP.replace("3 a", "3.0e+00 a").replace("<= 10", "<= 1E1"),
    "windows": bad.LP.replace("\n", "\r\n"),
    "no last line end": bad.LP.rstrip(),
    "zero": bad.LP.replace("3 a", "0 a").replace("a - b >= 1", "0 c + a - b >= 1"),
}


@pytest.mark.parametrize(
    ("suffix", "kind"), [(".mps", k) for k in LEGAL_MPS] + [(".lp", k) for k in LEGAL_LP]
)
def test_legal_files_are_read(suffix, kind, tmp_path):
    path = tmp_path / f"model{suffix}"
    path.write_bytes((LEGAL_MPS if suffix == ".mps" else LEGAL_LP)[kind].encode())
    assert_same(dt.read(path), by_highs(path))


def test_a_file_as_it_is_meant(tmp_path):
    (tmp_path / "free.mps").write_text(FREE)
    mip = dt.read(tmp_path / "free.mps")
    assert (mip.sense, mip.offset, mip.names, mip.row_names) == (
        "max", 7.0, ("a", "b", "c"), ("cap", "need", "mix"),
    )  # fmt: skip
    assert mip.A.toarray().tolist() == [[1.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.5, -1.0]]
    assert mip.cost.tolist() == [3.0, -2.5, 0.0]
    assert (mip.row_lower.tolist(), mip.row_upper.tolist()) == ([6.0, 1.0, -2.0], [10.0, np.inf, 0.0])
    assert (mip.lower.tolist(), mip.upper.tolist()) == ([0.0, -np.inf, -np.inf], [5.0, 6.0, np.inf])
    assert mip.integer.tolist() == [True, False, False]


def test_names_with_blanks_are_read_by_their_places(tmp_path):
    path = tmp_path / "fixed.mps"
    path.write_text(FIXED)
    mip = dt.read(path)
    assert mip.names == ("THE COL", "OTHER")
    assert mip.A.toarray().tolist() == [[1.0, 1.0], [1.0, 0.0]]
    assert (mip.row_upper[0], mip.upper[0], mip.cost[1]) == (4.0, 4.0, 2.0)


GUROBI = """\\ LP format - for model browsing. Use MPS format to capture full model detail.
Maximize
  - x[0,0] - 2x[0,1] + y[a] + y[a]_out
Subject To
 cap[0]: x[0,0] + x[0,1] <= 4
 R1: y[a] - x[0,0] >= -2
Bounds
 x[0,1] <= 3
 y[a] free
Generals
 x[0,0]
End
"""


def test_names_with_brackets_are_those_of_the_file(tmp_path):
    """Gurobi names columns and rows so by default; HiGHS takes the bracket for a quadratic part."""
    (tmp_path / "g.lp").write_text(GUROBI)
    (tmp_path / "round.lp").write_text(GUROBI.replace("[", "(").replace("]", ")"))
    mip, by_round_names = dt.read(tmp_path / "g.lp"), by_highs(tmp_path / "round.lp")
    assert mip.names == ("x[0,0]", "x[0,1]", "y[a]", "y[a]_out")
    assert mip.row_names == ("cap[0]", "R1")
    assert mip.cost.tolist() == [-1.0, -2.0, 1.0, 1.0]
    assert_same(replace(mip, names=by_round_names.names), by_round_names)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (GUROBI.replace("y[a]", "y[a-b]"), r"line 3 .*quadratic objective, or a name with signs.*\.mps"),
        (GUROBI.replace("y[a]_out", "y(a)"), "reads a different model"),
        (GUROBI.replace("y[a]_out", "[ y[a] ^2 ]"), "quadratic objective"),
        ("\\ nothing\n", "g.lp is empty"),
        ("", "g.lp is empty"),
    ],
)
def test_what_brackets_cannot_say_is_refused_with_its_reason(text, reason, tmp_path):
    (tmp_path / "g.lp").write_text(text)
    with pytest.raises(dt.ModelError, match=reason):
        dt.read(tmp_path / "g.lp")


def by_scip(path):
    """What SCIP's own reader makes of a file, by names; None where it refuses it."""
    model = pyscipopt.Model()
    model.hideOutput()
    try:
        model.readProblem(str(path))
    except OSError:
        return None
    sign = 1.0 if model.getObjectiveSense() == "minimize" else -1.0
    columns = {
        v.name: column(sign * v.getObj(), v.getLbOriginal(), v.getUbOriginal(), v.vtype() != "CONTINUOUS")
        for v in model.getVars()
    }
    entries = sorted(
        (v, value) for c in model.getConss() for v, value in model.getValsLinear(c).items() if value
    )
    sides = sorted((model.getLhs(c), model.getRhs(c)) for c in model.getConss())
    return columns, entries, sides


def column(cost, lower, upper, whole):
    """Its numbers; limits of an integer may or may not have been rounded by a reader."""
    low, high = max(lower, -1e20), min(upper, 1e20)
    return (cost, np.ceil(low - 1e-6), np.floor(high + 1e-6), 1.0) if whole else (cost, low, high, 0.0)


def by_us(path):
    mip = dt.read(path)
    parts = zip(mip.names, mip.sign * mip.cost, mip.lower, mip.upper, mip.integer, strict=True)
    columns = {name: column(*numbers) for name, *numbers in parts}
    A = mip.A.tocoo()
    entries = sorted((mip.names[j], value) for j, value in zip(A.coords[1], A.data, strict=True))
    lower, upper = np.maximum(mip.row_lower, -1e20), np.minimum(mip.row_upper, 1e20)
    return columns, entries, sorted(zip(lower, upper, strict=True))


@pytest.mark.parametrize("suffix", [".mps", ".lp"])
def test_damaged_files_that_are_read_are_read_as_scip_reads_them(suffix, tmp_path, capfd):
    """Bits flipped, words exchanged: what is still a model must be the one that stands in the text."""
    same = 0
    for seed in range(2000 if FULL else 150):
        _, damage = damaged(suffix, seed, str(tmp_path))
        path = tmp_path / f"model{suffix}"
        path.write_bytes(damage.content)
        try:
            ours = by_us(path)
        except dt.ModelError:
            continue
        theirs = by_scip(path)
        if theirs is None or ours[0].keys() != theirs[0].keys():  # SCIP takes other characters for names
            continue
        for name, numbers in theirs[0].items():
            assert ours[0][name] == pytest.approx(numbers, rel=1e-9, abs=1e-12), (seed, name)
        assert [name for name, _ in ours[1]] == [name for name, _ in theirs[1]], seed
        assert [v for _, v in ours[1]] == pytest.approx([v for _, v in theirs[1]]), seed
        assert np.array(ours[2]) == pytest.approx(np.array(theirs[2])), seed
        same += 1
    assert same > (100 if FULL else 5)


# --- limits ----------------------------------------------------------------------------------------


def endless(path, megabytes):
    """A packed file of many columns; HiGHS takes six times its size."""
    with gzip.open(path, "wb", compresslevel=1) as file:
        size = file.write(b"NAME t\nROWS\n N obj\n L c\nCOLUMNS\n")
        for j in range(megabytes << 15):
            size += file.write(b" x%d obj 1 c 1\n" % j)
            if size > megabytes << 20:
                break
        file.write(b"ENDATA\n")


def test_a_packed_file_is_unpacked_only_so_far(tmp_path):
    path = tmp_path / "model.mps.gz"
    endless(path, 2)
    said = r"unpacked, the file has more than \d+ bytes; the limit is 1,000,000 bytes"
    with pytest.raises(dt.ModelError, match=said):
        dt.read(path, limits=dt.FileLimits(bytes=1_000_000))
    said = r"elements; the limit is 10,000 elements.*dovetail.read\(path, limits="
    with pytest.raises(dt.ModelError, match=said):
        dt.read(path, limits=dt.FileLimits(elements=10_000))
    with pytest.raises(dt.ModelError, match=r"the limit is 0.001 seconds"):
        dt.read(path, limits=dt.FileLimits(seconds=0.001))
    assert dt.read(path).n_columns > 10_000


def test_a_compressed_file_by_another_name(tmp_path):
    path = tmp_path / "model.mps"
    endless(path, 2)
    with pytest.raises(dt.ModelError, match="the limit is 1,000,000 bytes"):
        dt.read(path, limits=dt.FileLimits(bytes=1_000_000))


BOMB = """
import resource, sys
import dovetail as dt
dt.read
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (1 << 26), size + (1 << 26)))
try:
    dt.read(sys.argv[1], limits=dt.FileLimits(bytes=1 << 27))
except dt.ModelError as error:
    print(error)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="hardware: only Linux limits memory")
def test_a_bomb_is_defused_before_it_is_in_memory(tmp_path):
    """A gigabyte of blanks in one megabyte: it is refused with less memory than the limit allows text."""
    path = tmp_path / "bomb.lp.gz"
    path.write_bytes(gzip.compress(b" " * (1 << 20)) * 1000)
    done = subprocess.run([sys.executable, "-c", BOMB, path], capture_output=True, text=True, check=False)
    assert "the limit is 134,217,728 bytes" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("bounds", "said"), [("5 <= x <= 2", "at least 5 and at most 2"), ("x <= -1", "at most -1")]
)
def test_a_column_that_can_be_no_number_is_named(bounds, said, tmp_path):
    file = tmp_path / "model.lp"
    file.write_text(f"minimize\n o: x + y\nsubject to\n r: x + y >= 1\nbounds\n {bounds}\n y <= 9\nend\n")
    with pytest.raises(dt.ModelError, match=f"model.lp: variable 'x' is bounded .*{said}"):
        dt.read(file)

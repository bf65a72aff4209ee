"""Reading files: what HiGHS reads comes out as the same program, and what is not linear is refused."""

import gzip

import highspy
import numpy as np
import pytest

import dovetail as dt
from dovetail.models.highs import as_mip

LP = """maximize
 obj: 3 a + 2 b - c + 7
subject to
 cap: a + b + c <= 10
 mix: a - b >= 1
bounds
 a <= 5
 -3 <= b <= 6
 c free
general
 a
end
"""


@pytest.fixture
def lp_file(tmp_path):
    path = tmp_path / "plant.lp"
    path.write_text(LP)
    return path


def test_reads_an_lp_file(lp_file):
    mip = dt.read(lp_file)
    assert mip.sense == "max"
    assert mip.names == ("a", "b", "c")
    assert mip.objective(np.array([1.0, 1.0, 1.0])) == 11.0
    assert mip.integer.tolist() == [True, False, False]
    assert (mip.lower[1], mip.upper[0]) == (-3.0, 5.0)
    assert np.isneginf(mip.lower[2])
    assert mip.A.shape[1] == 3


@pytest.mark.parametrize("suffix", [".mps", ".mps.gz"])
def test_reads_mps_files_of_the_same_program(lp_file, suffix, tmp_path):
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.readModel(str(lp_file))
    plain = tmp_path / "plant.mps"
    highs.writeModel(str(plain))
    path = plain
    if suffix == ".mps.gz":
        path = tmp_path / "plant.mps.gz"
        path.write_bytes(gzip.compress(plain.read_bytes()))
    mip, same = dt.read(path), dt.read(lp_file)
    rng = np.random.default_rng(0)
    for _ in range(10):
        x = rng.normal(size=3)
        # the MPS writer turns a maximisation into the minimisation of its negative
        assert mip.sign * mip.objective(x) == pytest.approx(same.sign * same.objective(x))
        assert sorted((mip.A @ x).tolist()) == pytest.approx(sorted((same.A @ x).tolist()))
    assert mip.names == same.names


def test_solves_what_it_read(lp_file):
    mip = dt.read(lp_file)
    problem = dt.Problem(mip)
    problem.add_predictor(lambda X: 10.0 - X.sum(axis=1), ["a", "b"], ["c"])
    result = dt.solve(problem, dt.Auto(effort=3), log=False)
    assert dt.check(problem, result.x).within()
    assert result.value("c") == pytest.approx(10.0 - result.value("a") - result.value("b"))


@pytest.mark.parametrize(
    ("text", "culprit"),
    [
        (LP.replace("+ 7", "+ [ a * a ] / 2"), "quadratic objective"),
        (
            LP.replace("c free", "c <= 9").replace("general\n a", "semi-continuous\n c"),
            "c is semi-continuous",
        ),
        (LP.replace("cap: a + b + c", "cap: a + [ b * b ]"), "cannot be read"),
        ("this is not a model", "a section must begin"),
    ],
)
def test_refuses_what_is_not_linear(tmp_path, text, culprit):
    path = tmp_path / "odd.lp"
    path.write_text(text)
    with pytest.raises(dt.ModelError, match=culprit):
        dt.read(path)


@pytest.mark.parametrize(("name", "culprit"), [("plant.txt", "must end in"), ("missing.lp", "no such file")])
def test_refuses_files_that_are_not_there(tmp_path, name, culprit):
    with pytest.raises(dt.ModelError, match=culprit):
        dt.read(tmp_path / name)


def test_a_program_of_continuous_columns_only():
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.addVar(0.0, 2.0)
    assert as_mip(highs).integer.tolist() == [False]


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

"""`dovetail check`, `report` and `init`."""

import json
import os
from dataclasses import replace

import pytest
import torch

import dovetail as dt
from dovetail.certifying.certify import certify
from tests.cli.commands import dovetail, refused


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    """A tiny problem that a certificate can be had for, solved by hand: y = |x - 1| as a ReLU network."""
    folder = tmp_path_factory.mktemp("solved")
    (folder / "m.lp").write_text(
        "minimize\n o: y + 0.1 x\nsubject to\n r: x + y <= 5\nbounds\n x <= 4\nend\n"
    )
    weights = {"0.weight": [[1.0], [-1.0]], "0.bias": [-1.0, 1.0], "2.weight": [[1.0, 1.0]], "2.bias": [0.0]}
    torch.save({name: torch.tensor(w, dtype=torch.float64) for name, w in weights.items()}, folder / "n.pt")
    (folder / "p.toml").write_text(
        'model = "m.lp"\n[[predictor]]\nfile = "n.pt"\nactivation = "relu"\ninputs = ["x"]\noutputs = ["y"]\n'
    )
    ran = dovetail(
        "solve", folder / "p.toml", "--solution", folder / "s.json", "--certificate", folder / "c.npz", "-q"
    )
    assert ran.code == 0, ran
    return folder


@pytest.fixture
def record(solved):
    return json.loads((solved / "s.json").read_text())


def checked(solved, tmp_path, record, *more):
    (tmp_path / "s.json").write_text(json.dumps(record))
    return dovetail("check", solved / "p.toml", tmp_path / "s.json", *more)


def test_a_result_holds_and_so_does_its_bound(solved):
    ran = dovetail("check", solved / "p.toml", solved / "s.json")
    assert ran.code == 0, ran
    assert ran.out.splitlines()[-1] == "Everything holds."
    assert "as the file says" in ran.out
    ran = dovetail("check", solved / "p.toml", solved / "s.json", "--certificate", solved / "c.npz")
    assert ran.code == 0, ran
    assert "ok  bound        the bound 0.0999" in ran.out


def test_a_bound_of_rows_as_written_holds_beside_a_certificate_of_looser_ones(tmp_path):
    (tmp_path / "m.lp").write_text("minimize\n o: x + y\nsubject to\n r: x + y >= 1\nend\n")
    names = tmp_path / "s.json", tmp_path / "c.npz"
    ran = dovetail("solve", tmp_path / "m.lp", "--solution", names[0], "--certificate", names[1], "-q")
    assert ran.code == 0, ran
    ran = dovetail("check", tmp_path / "m.lp", names[0], "--certificate", names[1])
    assert ran.code == 0, ran
    assert "of constraints relaxed as in the check; the file claims 1" in " ".join(ran.out.split())


@pytest.mark.parametrize(
    ("column", "value", "kind"), [("y", 0.5, "prediction"), ("x", -1.0, "bounds"), ("x", 4.5, "bounds")]
)
def test_a_point_that_was_changed_does_not(solved, tmp_path, record, column, value, kind):
    record["x"][record["names"].index(column)] = value
    ran = checked(solved, tmp_path, record)
    assert ran.code == 1
    assert f"NO  {kind}" in ran.out


def test_claims_that_were_changed_do_not(solved, tmp_path, record):
    ran = checked(solved, tmp_path, record | {"objective": record["objective"] - 0.01})
    assert ran.code == 1
    assert "NO  objective" in ran.out
    ran = checked(
        solved, tmp_path, record | {"bound": record["bound"] + 0.01}, "--certificate", solved / "c.npz"
    )
    assert ran.code == 1
    assert "but the file claims 0.1" in " ".join(ran.out.split())
    assert "this one is: 0.1" in " ".join(ran.out.split())


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({"bound": 0.2}, "that no solution is better than 0.2, but this one is: 0.1"),
        ({"bound": -3.0}, "optimal, but its bound -3 is farther than 1e-05 from 0.1"),
        ({"bound": None, "bound_kind": "none"}, "optimal and has no bound"),
    ],
)
def test_a_bound_against_its_own_point_is_named(solved, tmp_path, record, claims, said):
    ran = checked(solved, tmp_path, record | claims)
    assert ran.code == 1
    assert f"NO bound the file says {said}" in " ".join(ran.out.split())
    assert "Everything holds" not in ran.out


def test_a_bound_that_leaves_a_gap_contradicts_nothing(solved, tmp_path, record):
    ran = checked(solved, tmp_path, record | {"bound": -3.0, "status": "feasible"})
    assert ran.code == 0, ran


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_lines_fit_the_terminal(solved, columns):
    ran = dovetail(
        "check", solved / "p.toml", solved / "s.json", "--certificate", solved / "c.npz", columns=columns
    )
    assert max(map(len, ran.out.splitlines())) < columns
    assert "the bound 0.0999" in " ".join(ran.out.split())


def test_a_certificate_that_falls_short_is_said_to_by_the_solve(solved, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "dovetail.solving.packing.certify", lambda *given: replace(certify(*given), bound=0.05)
    )
    ran = dovetail("solve", solved / "p.toml", "--certificate", tmp_path / "c.npz")
    assert ran.code == 0, ran
    assert "only, not the bound 0." in " ".join(ran.out.split()) + ran.err


def test_a_certificate_of_another_problem_proves_nothing(solved, tmp_path, record):
    other = tmp_path / "m.lp"
    other.write_text((solved / "m.lp").read_text().replace("0.1 x", "0.2 x"))
    (tmp_path / "p.toml").write_text((solved / "p.toml").read_text().replace("n.pt", str(solved / "n.pt")))
    record["objective"] = 0.2
    (tmp_path / "s.json").write_text(json.dumps(record))
    ran = dovetail("check", tmp_path / "p.toml", tmp_path / "s.json", "--certificate", solved / "c.npz")
    assert ran.code == 1
    assert "NO  bound        it belongs to another problem" in ran.out


def test_without_a_point_there_is_nothing_to_check(solved, tmp_path, record):
    ran = checked(solved, tmp_path, record | {"x": None, "status": "no_solution"})
    assert (ran.code, ran.out) == (1, "There is no solution to check: the status is no_solution.\n")


def test_results_of_other_problems_are_refused(solved, tmp_path, record):
    record["names"] = ["x", "z"]
    (tmp_path / "s.json").write_text(json.dumps(record))
    said = refused("check", solved / "p.toml", tmp_path / "s.json")
    assert "the result of another problem: 'y' is in only one of the two" in said
    record["names"] = [*dt.read(solved / "m.lp").names][::-1]
    (tmp_path / "s.json").write_text(json.dumps(record))
    assert "in another order" in refused("check", solved / "p.toml", tmp_path / "s.json")


BAD = [
    (b"", "not a result as --solution"),
    (b"\x80\x81", "no text in UTF-8"),
    (b"[1, 2]", "not a result"),
    (b'{"format": 2}', "result format 2 is not known"),
    (b'{"a": ' * 100_000, "not a result"),
    ("truncated", "the result ends in the middle, after 500 characters"),
]


@pytest.mark.parametrize(("text", "said"), BAD, ids=range(len(BAD)))
@pytest.mark.parametrize("command", ["check", "report", "start"])
def test_damaged_and_foreign_result_files(solved, tmp_path, text, said, command):
    file = tmp_path / "bad.json"
    file.write_bytes((solved / "s.json").read_bytes()[:500] if text == "truncated" else text)
    line = {
        "check": ["check", solved / "p.toml", file],
        "report": ["report", file, "-o", tmp_path / "page.html"],
        "start": ["solve", solved / "p.toml", "--start", file],
    }[command]
    assert said in (told := refused(*line))
    assert str(file) in told
    assert len(told) < 600
    assert [path.name for path in tmp_path.iterdir()] == ["bad.json"]


def test_missing_files_and_folders(solved, tmp_path):
    assert f"there is no file {tmp_path / 'no.json'}" in refused("report", tmp_path / "no.json")
    assert "is a folder" in refused("check", solved / "p.toml", tmp_path)
    assert "there is no file" in refused("check", tmp_path / "no.toml", solved / "s.json")
    said = refused("check", solved / "p.toml", solved / "s.json", "--certificate", solved / "s.json")
    assert "is not a certificate" in said


def test_a_report_of_a_result(solved, tmp_path):
    page = tmp_path / "page.html"
    assert dovetail("report", solved / "s.json", "-o", page).code == 0
    assert "optimal" in page.read_text()
    assert "cannot be written" in refused("report", solved / "s.json", "-o", tmp_path / "no" / "page.html")
    assert "it is an input file" in refused("report", solved / "s.json", "-o", solved / "s.json")


def test_several_results_are_compared_by_the_names_of_their_files(solved, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(dt, "compare", lambda *given: seen.append(given) or given[1], raising=False)
    other = tmp_path / "other.json"
    other.write_bytes((solved / "s.json").read_bytes())
    assert dovetail("report", solved / "s.json", other, "-o", tmp_path / "page.html").code == 0
    ((named, path),) = seen
    assert (list(named), path) == ([str(solved / "s.json"), str(other)], tmp_path / "page.html")


def test_init_replaces_nothing(tmp_path):
    (tmp_path / "plan.lp").write_text("mine")
    said = refused("init", tmp_path)
    assert f"{tmp_path / 'plan.lp'} exists already" in said
    assert os.listdir(tmp_path) == ["plan.lp"]
    assert "cannot be made" in refused("init", tmp_path / "plan.lp" / "folder")
    assert dovetail("init", tmp_path / "a" / "b").code == 0
    assert len(os.listdir(tmp_path / "a" / "b")) == 4

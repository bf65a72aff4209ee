"""docs/command_line.md: its commands run, one after another, and its tables are those of the code."""

import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest

import dovetail as dt
from dovetail.cli.exit_code import ExitCode
from dovetail.problem_file.description import PREDICTOR, PROBLEM_FILE, SOLVE, require_schema
from dovetail.problem_file.document import Document
from tests.cli.commands import dovetail
from tests.cli.plan_files import write_plan

PAGE = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


def keys(heading):
    """The first cells of the table below a heading."""
    table = PAGE[PAGE.index(heading) :].split("\n\n")
    rows = next(part for part in table if part.startswith("|")).splitlines()[2:]
    return [row.split("|")[1].strip().strip("`[]") for row in rows]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which all commands of the page were run."""
    folder = tmp_path_factory.mktemp("page")
    write_plan(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for line in "".join(blocks("sh")).splitlines():
            program, *arguments = shlex.split(line)
            if program == "dovetail":
                ran = dovetail(*arguments)
                assert ran.code == 0, (line, ran)
            else:
                assert [program, arguments[0]] == ["python", "-c"]
                exec(arguments[1], {})
    return folder


def test_every_command_runs(folder):
    for name in ("result.json", "page.html", "r.html", "s.json", "first.json", "s.npz"):
        assert (folder / name).exists(), name


def test_the_solution_file_has_the_keys_of_the_table(folder):
    assert set(keys("## The solution file")) <= set(json.loads((folder / "s.json").read_text()))


def test_the_table_of_keys_is_the_schema():
    documented = keys("## problem.toml")
    assert set(documented) == {*PROBLEM_FILE, *PREDICTOR}
    for name in [*SOLVE, "start"]:
        assert f"`{name}`" in PAGE, name
    for name in PROBLEM_FILE["output"].inner:
        assert f"`{name}`" in PAGE, name


def test_the_table_of_exit_codes_is_complete():
    assert {int(code) for code in keys("## Exit codes")} == set(ExitCode)


def fits(content):
    """Whether a file with this content is one that can be solved."""
    try:
        require_schema(Document("p", Path(), {"model": "m.lp", **content}, {}))
    except dt.OptionError:
        return False
    return True


def test_the_pieces_of_toml_fit_the_schema():
    samples, method = blocks("toml")
    pieces = [{"file": "n.onnx", **tomllib.loads(part)} for part in samples.split("\n\n")]
    assert [fits({"predictor": [piece]}) for piece in pieces] == [True] * len(pieces)
    assert not fits({"predictor": [{**pieces[0], "inpts": []}]})
    assert fits(tomllib.loads(method)) and not fits({**tomllib.loads(method), "methd": {}})

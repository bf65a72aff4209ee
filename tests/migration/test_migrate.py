"""Programs rewritten: they run and find what they found; the rest is listed by line."""

import json
import sys

import pytest

import dovetail as dt
from dovetail_peers.migration.migrate import migrate
from dovetail_peers.migration.program import SourceBytes
from dovetail_peers.migration.settings import START
from tests.cli.commands import dovetail as command
from tests.cli.commands import refused
from tests.modelling.test_peers import PROGRAMS

GUROBI = '''"""Größe: columns are counted in bytes."""
import os, gurobi_ml.sklearn
import gurobipy as gp
from gurobi_ml import (
    add_predictor_constr as add,
    register_predictor_constr,
)
from sklearn.linear_model import LinearRegression

größe = LinearRegression().fit([[0.0], [1.0]], [0.0, 2.0])
m = gp.Model(env=gp.Env(params={"OutputFlag": 0})); x = m.addVar(ub=3.0, name="ä")
y = m.addVar()
m.update()
pred = add(m, größe, [x], [y])
m.setObjective(y, gp.GRB.MAXIMIZE)
m.Params.TimeLimit = 7; m.setParam("OutputFlag", 0); x.Start = 1.0
m.optimize()
if m.Status == gp.GRB.OPTIMAL:
    print(m.ObjBound)
found = m.ObjVal, x.X
'''


def test_gurobi():
    done = migrate(GUROBI)
    lines = done.text.splitlines()
    assert lines[1] == "import os; import dovetail.compat.gurobi_ml as gurobi_ml"
    assert lines[3:9] == [
        "from dovetail.compat.gurobi_ml import (",
        "    add_predictor_constr as add,",
        "    register_predictor_constr,",
        ")",
        "from sklearn.linear_model import LinearRegression",
        "import dovetail",
    ]
    assert "result = dovetail.solve(m, time_limit=7, log=False)" in lines
    assert 'if (result.status == "optimal"):' in lines
    assert [str(each) for each in done.left] == [
        f"line 16: x.Start -> {START}",
        "line 19: m.ObjBound -> result.bound",
    ]
    space = {}
    exec(done.text.replace("m.ObjBound", "result.bound"), space)
    assert space["found"] == pytest.approx((6.0, 3.0)) and space["result"].status == "optimal"


OMLT = """import pyomo.environ as pyo
from omlt import OmltBlock, OffsetScaling
from omlt.io import load_onnx_neural_network, load_torch
from omlt.neuralnet import ReluBigMFormulation
from tensorflow import keras

result = 1
solver = pyo.SolverFactory("cbc")
status = solver.solve(m, tee=True, timelimit=9)
pyo.SolverFactory("scip").solve(m.block, options={"a": 1})
pyo.assert_optimal_termination(status)
ended = pyo.check_optimal_termination(status) and pyo.check_optimal_termination(another)
assert status.solver.termination_condition == "optimal"
"""


def test_pyomo():
    done = migrate(OMLT)
    assert "from dovetail.compat.omlt import OmltBlock, OffsetScaling\n" in done.text
    assert "status = dovetail.solve(m, time_limit=9)\n" in done.text
    assert "dovetail_result = dovetail.solve(m.block, log=False)\n" in done.text
    assert {each.line: each.what for each in done.left} == {
        3: "load_torch",
        5: "tensorflow",
        10: 'options={"a": 1}',
        12: "pyo.check_optimal_termination(another)",
        13: "status.solver.termination_condition",
    }
    assert '\nassert status.status == "optimal", status.message\n' in done.text
    assert 'ended = (status.status == "optimal") and pyo.check_optimal_termination(another)\n' in done.text


SCIP = """from pyscipopt import Model
from pyscipopt_ml.add_predictor import add_predictor_constr
from pyscipopt_ml.nowhere import nothing

def build():
    scip, other = Model(), Model()
    scip.hideOutput()
    add_predictor_constr(scip, net, x, y)
    scip.setParam("limits/gap", 0.01)
    scip.optimize()
    other.optimize()
    return scip.getStatus(), other.getStatus()"""


def test_scip():
    done = migrate(SCIP)
    assert "    result = dovetail.solve(scip, gap=0.01, log=False)\n    other.optimize()\n" in done.text
    assert [each.line for each in done.left] == [3, 11, 12]
    assert "no predictor is added to other" in str(done.left[1])


@pytest.mark.parametrize("name", ["wine_for_pyscipopt_ml", "offers_for_gurobi_ml"])
def test_the_programs_of_the_peers_need_no_hand(name):
    done = migrate((PROGRAMS / f"{name}.py").read_text())
    assert (done.imports, done.solves, done.left) == (1, 1, ())
    compile(done.text, name, "exec")


NOTEBOOK = """import pyomo.environ as pyo
from omlt import OmltBlock

status = pyo.SolverFactory("cbc").solve(m)
other = {"Solver": 1}
print(status["Solver"][0]["Time"], other["Solver"], status["Problem"][0]["Upper bound"])

import numpy as np
"""


def test_a_notebook_imports_all_along_and_looks_results_up():
    done = migrate(NOTEBOOK)
    lines = done.text.splitlines()
    assert lines.index("import dovetail") < lines.index("status = dovetail.solve(m, log=False)")
    assert 'print(status.seconds, other["Solver"], status["Problem"][0]["Upper bound"])' in lines
    assert [str(each) for each in done.left] == [
        'line 6: status["Problem"][0]["Upper bound"] -> result.status, .objective, .bound, .seconds'
    ]


def notebook_of(*cells):
    each = [{"cell_type": "code", "source": cell.splitlines(keepends=True), "outputs": []} for cell in cells]
    return json.dumps({"cells": [{"cell_type": "markdown", "source": ["# ö"]}, *each], "nbformat": 4})


def test_a_notebook(tmp_path):
    cells = [
        "%matplotlib inline\nfrom gurobi_ml import (  # the peer\n    add_predictor_constr,\n)",
        "%%bash\nfor each in a; do echo; done",
        "%%time\nm = build()\nadd_predictor_constr(m, f, x, y)\nm.optimize(  # now\n)\nm.NodeCount",
    ]
    path, out = tmp_path / "plan.ipynb", tmp_path / "new.ipynb"
    path.write_text(notebook_of(*cells))
    ran = command("migrate", path, "--out", out, "--diff")
    code = ["".join(cell["source"]) for cell in json.loads(out.read_text())["cells"]]
    assert code == [
        "# ö",
        cells[0].replace("from gurobi", "from dovetail.compat.gurobi") + "\nimport dovetail",
        cells[1],
        cells[2].replace("m.optimize(", "result = dovetail.solve(m,"),
    ]
    assert ran.code == 1 and "by hand: cell 3, line 6: m.NodeCount" in ran.err
    assert "-from gurobi_ml import (  # the peer\n+from dovetail.compat.gurobi_ml import" in ran.out
    again = command("migrate", out, "--out", tmp_path / "third.ipynb")
    assert (again.code, again.out, again.err) == (0, "", "")
    assert (tmp_path / "third.ipynb").read_text() == out.read_text()
    path.write_text("{}")
    assert "is no notebook" in refused("migrate", path)


def test_the_second_time_nothing_is_said(tmp_path):
    path = tmp_path / "p.py"
    path.write_text(migrate(GUROBI).text)
    ran = command("migrate", path, "--out", path)
    assert (ran.code, ran.out, ran.err) == (0, "", "") and path.read_text() == migrate(GUROBI).text


def test_a_program_in_the_peers_own_repository():
    done = migrate("from src.pyscipopt_ml.add_predictor import add_predictor_constr\nimport src.omlt as o\n")
    assert done.text.splitlines() == [
        "from dovetail.compat.pyscipopt_ml.add_predictor import add_predictor_constr",
        "import dovetail.compat.omlt as o",
    ]


def test_what_is_not_there_is_said():
    with pytest.raises(dt.OptionError, match="imports none of gurobi_ml"):
        migrate("x = 1\n")
    with pytest.raises(dt.OptionError, match="line 2"):
        migrate("import omlt\nx = = 1\n")
    assert "no solve call" in str(migrate("import omlt\n").left[0])
    callback = "import gurobi_ml\ngurobi_ml.add_predictor_constr(gp_model=m)\nm.optimize(cb)\nm.optimize"
    assert "callback=function" in str(migrate(callback).left[0])


def test_a_library_that_cannot_be_imported_is_no_trouble(monkeypatch):
    """Keras without its backend, say: the program is read, not run."""
    monkeypatch.setitem(sys.modules, "keras", None)
    told = migrate("from omlt.dependencies import keras, keras_available, jax\n").left
    assert [each.what for each in told if each.line == 1] == ["jax", "no solve call was found"]


def test_the_last_line_may_have_no_end():
    source = SourceBytes("import omlt")
    import ast

    assert source.edited([source.line_after(ast.parse("import omlt").body[0], "x")]) == "import omlt\nx\n"


def test_the_command(tmp_path):
    path, out = tmp_path / "p.py", tmp_path / "new.py"
    path.write_text(GUROBI)
    ran = command("migrate", path, "--out", out)
    assert ran.code == 1 and ran.out == "" and out.read_text() == migrate(GUROBI).text
    assert "2 imports and 1 solve call rewritten" in ran.err and ran.err.count("by hand") == 2
    path.write_text((PROGRAMS / "wine_for_pyscipopt_ml.py").read_text())
    ran = command("migrate", path)
    assert ran.code == 0 and "dovetail.compat.pyscipopt_ml" in ran.out
    assert "cannot be read" in refused("migrate", tmp_path / "none.py")


def solves_of(text):
    """The lines of the migrated program that solve, and what is left."""
    done = migrate(text)
    lines = [line.strip() for line in done.text.splitlines() if "dovetail.solve" in line]
    return lines, {(each.line, each.what): each.instead for each in done.left}


@pytest.mark.parametrize(
    ("program", "solve"),
    [
        ("def build():\n    add_predictor_constr(m, f, x, y)\n    return m\nplan = build()\nplan.optimize()",
         "result = dovetail.solve(plan)"),
        ("add = add_predictor_constr\nadd(m, f, x, y)\nm.optimize()", "result = dovetail.solve(m)"),
        ("class Plan(gp.Model):\n    def go(self):\n        return super().optimize()",
         "return dovetail.solve(self)"),
        ("gp.Model.optimize(m)", "result = dovetail.solve(m)"),
        ("m = gp.Model()\nplan.model = m\nplan.model.optimize(None)", "result = dovetail.solve(plan.model)"),
        ("class Plan:\n    def optimize(self):\n        self.m = gp.Model()\n        self.m.optimize()\n"
         "Plan().optimize()", "result = dovetail.solve(self.m)"),
        ("with SolverFactory('x') as solver:\n    solver.solve(m)", "result = dovetail.solve(m, log=False)"),
        ("def run(opt, model):\n    return opt.solve(model)\nrun(SolverFactory('x'), m)",
         "return dovetail.solve(model, log=False)"),
        ("from pyomo.contrib.appsi.solvers import Highs\nopt = Highs()\nopt.solve(m)",
         "result = dovetail.solve(m, log=False)"),
        ("SF = SolverFactory\nSF('x').solve(model=m, tee=loud)",
         "result = dovetail.solve(m, log=bool(loud))"),
    ],
)  # fmt: skip
def test_a_solve_is_found_under_any_name(program, solve):
    lines, left = solves_of(
        "import gurobipy as gp\nfrom pyomo.environ import SolverFactory\nimport gurobi_ml\n" + program
    )
    assert lines == [solve] and not left


@pytest.mark.parametrize(
    ("program", "left"),
    [
        ("m.optimize(callback)", "m.optimize(callback)"),  # whose lazy rows nobody else knows
        ("go = m.optimize", "m.optimize"),
        ("getattr(m, 'optimize')()", "'optimize'"),
        ("opt = SolverFactory('x')\nopt.set_instance(m)\nopt.solve()", "opt.solve()"),
        ("unknown.solve(m)", "unknown.solve(m)"),
        ("class Plan:\n    def optimize(self):\n        pass\nunknown.optimize()", "unknown.optimize()"),
        ("m = gp.Model()\ntwin = m.copy()", "m.copy()"),
    ],
)
def test_what_cannot_be_rewritten_stays_and_is_listed(program, left):
    lines, found = solves_of(
        "import gurobipy as gp\nfrom pyomo.environ import SolverFactory\nimport gurobi_ml\n" + program
    )
    assert lines == [] and [what for _, what in found] == [left]
    assert all("refuses" in instead for instead in found.values())


@pytest.mark.parametrize(
    "program",
    ["np.linalg.solve(A, b)", "scipy.optimize.minimize(f, 0)", "bayes.optimize(f)", "A.solve(b, c)"],
)
def test_other_functions_of_these_names_are_left_alone(program):
    lines, found = solves_of(f"import numpy as np, scipy, bayes, gurobi_ml\n{program}\n")
    assert lines == [] and [what for _, what in found] == ["no solve call was found"]


SETTINGS = """import gurobipy as gp, gurobi_ml
def first(model, seconds):
    model.Params.TimeLimit = seconds
    model.setParam("mipgap", 0.01); model.Params.BestObjStop = 3
    model.Params.Threads = 4
    model.setParam(gp.GRB.Param.MIPFocus, 1)
    if seconds > 9:
        model.Params.Seed = 5
    model.optimize()
    model.Params.TimeLimit = 2 * seconds
    model.optimize()
    model.Params.Seed = 1
def second(model):
    model.optimize()
"""


def test_settings_are_translated_or_listed():
    lines, left = solves_of(SETTINGS)
    rest = "gap=0.01, target=3, n_jobs=4)"
    assert lines == [
        f"result = dovetail.solve(model, time_limit=seconds, {rest}",
        f"result = dovetail.solve(model, time_limit=2 * seconds, {rest}",
        "result = dovetail.solve(model, gap=0.01, target=3, seed=1, n_jobs=4)",  # numbers may be meant here
    ]
    assert left == {
        (
            6,
            "model.setParam(gp.GRB.Param.MIPFocus, 1)",
        ): "not translated: dovetail.solve has no option for it",
        (8, "model.Params.Seed"): "dovetail.solve(..., seed=5)",
    }


def test_settings_of_pyomos_solvers_and_of_scip():
    lines, left = solves_of(
        "from pyomo.environ import SolverFactory\nimport omlt\n"
        "opt = SolverFactory('gurobi', options={'Threads': 2, 'Method': 1})\n"
        "opt.options['TimeLimit'] = 7\nopt.options.update({'MIPGap': 0.5})\nopt.config.load = True\n"
        "opt.solve(m, tee=True, options={'BestObjStop': 4}, warmstart=True)\n"
    )
    assert lines == ["result = dovetail.solve(m, time_limit=7, gap=0.5, target=4, n_jobs=2)"]
    assert [line for line, _ in left] == [3, 6, 7]
    lines, left = solves_of(
        "import pyscipopt_ml\nm.setParams({'limits/time': 5, 'a/b': 1})\nm.setPresolve(OFF)\n"
        "m.setIntParam('parallel/maxnthreads', 0)\nm.setParams(given)\nm.hideOutput(False)\n"
        "solved(m).optimize()"
    )
    assert lines == ["result = dovetail.solve(solved(m), time_limit=5)"]
    assert [line for line, _ in left] == [2, 3, 5]


def test_a_status_is_compared_with_the_result():
    """gurobipy itself says OPTIMAL of every point that it was handed."""
    lines = migrate(
        "import gurobi_ml\nfrom gurobipy import GRB\n"
        "m.optimize()\nif m.Status != GRB.OPTIMAL:\n    pass\n"
        "r = s.optimize()\nok = s.getStatus() == 'optimal'\n"
    ).text.splitlines()
    assert 'if (result.status != "optimal"):' in lines and 'ok = (r.status == "optimal")' in lines

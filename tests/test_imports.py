"""Imports: a star around core, nothing heavy before it is needed, optional libraries in one file each."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.source_nodes import nodes

ROOT = Path(__file__).parent.parent / "src" / "dovetail"

ALLOWED = {
    "core": set(),
    "certificates": {"core"},
    "report": {"core"},
    "run": {"core", "report", "certificates"},
    "predictors": {"core"},
    "mip": {"core", "run"},
    "nn": {"core", "run"},
    "coupling": {"core", "run"},
    "problems": {"core", "run"},
    "bounds": {"core", "run", "mip"},
    "analysis": {"core", "run", "mip", "bounds"},
    "reformulations": {"core", "run", "bounds", "analysis"},
    "models": {"core"},
    "certifying": {"core", "run", "bounds", "analysis", "certificates", "methods"},
    "modelling": {
        "core",
        "run",
        "models",
        "bounds",
        "analysis",
        "reformulations",
        "predictors",
        "certificates",
    },
    "compat": {"core", "modelling", "models", "predictors"},
    "migration": {"core", "compat"},
    "linearised": {"core", "run", "mip", "bounds", "analysis"},
    "methods": {"core", "run", "mip", "nn", "coupling", "bounds", "analysis", "reformulations", "linearised"},
    "experiments": {"core", "problems", "run"},
    "testing": {"core", "run", "mip", "nn", "problems"},
}
"""Which folders a folder may import; `solving`, `sharding`, `sweeping`, `problem_file`, `demo` and `cli` may
import everything."""

HOUSE_LP = {
    "mip/highs.py",
    "bounds/confirmed.py",
    "bounds/safe_lp.py",
    "linearised/condition_rows.py",
    "linearised/trust_region.py",
    "linearised/sensitivity.py",
    "methods/cell_columns/choice.py",
    "methods/cell_columns/frontier.py",
    "methods/cell_descent/cell_program.py",
    "methods/column_generation/master.py",
    "methods/column_generation/restricted_master.py",
    "methods/planes_lp/envelope.py",
    "methods/template_pricing/core_choice.py",
}
"""The files that use HiGHS directly, as the house LP; `mip/loaded_highs.py` says why there is no protocol."""

HOUSE_MIP = {
    "analysis/elastic.py",
    "linearised/rounding_room.py",
    "bounds/confirmed.py",
    "linearised/starts.py",
    "methods/clearing.py",
    "mip/piqp.py",
    "solving/job.py",
}
"""The files that ask `HighsEngine` by name, for programs in which the user has no say."""

OPTIONAL = {
    "pyscipopt": {"mip/scip.py", "models/scip/model.py"},
    "pyscipopt_ml": {"methods/big_m/scip_formulation.py"},
    "pandas": {"run/pandas_frame.py"},
    "highspy": {"mip/highs_threads.py", "mip/loaded_highs.py", "models/highs.py"},
    "piqp": {"mip/loaded_piqp.py"},
    "gurobipy": {"models/gurobi.py"},
    "pyomo": {"models/pyomo_block.py", "models/pyomo_solvers.py"}
    | {f"compat/omlt/{name}.py" for name in ("block", "ways", "written_layers", "written_tree")},
    "linopy": {"models/linopy_model.py"},
    "xarray": {"models/linopy_model.py"},
    "matplotlib": {"experiments/figures.py", "report/matplotlib_plot.py"},
    "jinja2": {"report/page/templates.py"},
    "onnx": {"predictors/onnx/file.py"},
    "sklearn": {"predictors/scikit_learn/network.py", "predictors/scikit_learn/predictor.py"},
    "keras": {"predictors/keras_model.py"},
    "ray": {"run/ray_cluster.py"},
    "triton": {f"methods/template_pricing/triton_{what}.py" for what in ("descent", "step")}
    | {f"bounds/planes/triton_{what}.py" for what in ("lines", "prices")},
    "pytest": {f"testing/{part}_suite.py" for part in ("engine", "method", "predictor", "sub_solver")},
}
"""The only files that may import a library."""


@cache
def imported(path):
    """Read once: a dozen tests ask for every file."""
    found = []
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return found


@pytest.mark.parametrize("folder", ALLOWED)
def test_the_star(folder):
    for path in sorted((ROOT / folder).rglob("*.py")):
        for name in imported(path):
            parts = name.split(".")
            if parts[0] != "dovetail" or len(parts) < 2:
                continue
            target = parts[1]
            if not (ROOT / target).is_dir():
                continue
            assert target == folder or target in ALLOWED[folder], f"{path.relative_to(ROOT)} imports {name}"


def test_no_folder_imports_the_top():
    for folder in ALLOWED:
        for path in (ROOT / folder).rglob("*.py"):
            tops = {"solving", "sharding", "sweeping", "problem_file", "cli", "demo"}
            assert not tops & {
                name.split(".")[1] for name in imported(path) if name.startswith("dovetail.")
            }, path


@pytest.mark.parametrize(("module", "files"), [("loaded_highs", HOUSE_LP), ("highs", HOUSE_MIP)])
def test_only_these_files_use_highs_directly(module, files):
    """All others take the engine that the user chose, from the table."""
    users = {path for path in ROOT.rglob("*.py") if f"dovetail.mip.{module}" in imported(path)}
    assert {str(path.relative_to(ROOT)) for path in users} == files


def test_experiments_use_public_names_only():
    """But for the table they are listed in, and a sub-solver written as anyone would."""
    for path in (ROOT / "experiments").rglob("*.py"):
        inner = {name for name in imported(path) if name.startswith(("dovetail.core", "dovetail.run."))}
        assert not inner or path.name in ("__init__.py", "exact_step.py"), path


def test_optional_libraries_are_imported_in_one_file_each():
    for path in ROOT.rglob("*.py"):
        place = str(path.relative_to(ROOT))
        for name in imported(path):
            root = name.split(".")[0]
            assert root not in OPTIONAL or place in OPTIONAL[root], place


def modules_after(statement):
    code = f"import sys; {statement}; print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stdout.split()}


def test_importing_dovetail_is_light():
    heavy = {"torch", "scipy", "numpy", "highspy", "piqp", "pyscipopt", "pandas", "rich", "typer"}
    assert not heavy & modules_after("import dovetail")


def test_solving_imports_no_optional_library():
    """Predictors taken, all of our own names loaded, a problem solved: nothing that a user might not have.

    The very first solve has a limit shorter than its imports take: the search has it all the same. Its clock
    counts modules, a hundred to the second.
    """
    optional = {"pyscipopt", "pyscipopt_ml", "gurobipy", "gurobi_ml", "pyomo", "linopy", "xarray", "pandas"}
    optional |= {"onnx", "onnxruntime", "sklearn", "skorch", "keras", "joblib", "matplotlib", "ray"}
    solve = (
        "import sys, time; time.perf_counter = lambda: len(sys.modules) / 100.0; "
        "import dovetail as dt; "
        "first = dt.Problem(dt.Mip([1.0, 1.0], [[2.0, 3.0]], [4.0], [9.0], 0.0, 9.0, True)); "
        "began = len(sys.modules); first = dt.solve(first, time_limit=2.0, log=False); "
        "assert first.status == 'optimal' and first.seconds < 2.0 < (len(sys.modules) - began) / 100.0; "
        "[getattr(dt, name) for name in dt.__all__]; import dovetail.predictors.onnx.model, torch; "
        "from dovetail.core.predictor import as_predictor; as_predictor(torch.nn.Linear(1, 1)); "
        "p = dt.Problem(dt.Mip([1.0, 1.0], lower=-1.0, upper=1.0)); "
        "dt.add_predictor_constr(p, abs, [0], [1]); dt.solve(p, dt.Auto(effort=1), log=False)"
    )
    assert not optional & modules_after(solve)


def test_the_command_line_imports_neither_torch_nor_scipy():
    heavy = {"torch", "scipy", "highspy", "piqp", "pyscipopt", "pandas", "sklearn", "matplotlib"}
    assert not heavy & modules_after("import dovetail.cli")
    run = "from typer.testing import CliRunner; from dovetail.cli import app"
    run += "; r = CliRunner().invoke(app, ['--help'])"
    assert not heavy & modules_after(run + "; assert r.exit_code == 0")


def test_public_names_exist_and_the_rest_is_an_attribute_error():
    import dovetail

    for name in dovetail.__all__:
        assert getattr(dovetail, name) is not None
    assert set(dovetail.__all__) <= set(dir(dovetail))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        dovetail.nonsense  # noqa: B018


def test_type_checkers_see_the_same_public_names():
    import dovetail

    (block,) = (
        node for node in ast.parse((ROOT / "__init__.py").read_text()).body if isinstance(node, ast.If)
    )
    seen = {alias.asname: node.module for node in block.body for alias in node.names}
    assert seen == dovetail._PUBLIC, "the TYPE_CHECKING block of src/dovetail/__init__.py has other names"

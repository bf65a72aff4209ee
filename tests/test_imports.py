"""Imports: a star around core, nothing heavy before it is needed, optional libraries in one file each."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.source_nodes import nodes

SRC = Path(__file__).parent.parent / "src"
ROOT = SRC / "dovetail"

METHODS_KNOW = {
    "core",
    "networks",
    "run",
    "mip",
    "nn",
    "coupling",
    "bounds",
    "structure",
    "reformulations",
    "linearised",
    "branching",
    "decomposition",
}
"""What the methods of the library and those of the study may import."""

ALLOWED = {
    "core": {"networks"},
    "networks": {"core"},
    "certificates": {"core", "networks"},
    "report": {"core"},
    "run": {"core", "report", "certificates"},
    "predictors": {"core", "networks"},
    "mip": {"core", "run"},
    "nn": {"core", "run"},
    "coupling": {"core", "networks", "run"},
    "bounds": {"core", "networks", "run", "mip"},
    "structure": {"core", "networks", "run", "bounds"},
    "reformulations": {"core", "networks", "run", "bounds", "structure"},
    "branching": {"core", "networks", "run", "mip", "bounds", "structure", "certificates"},
    "decomposition": {"core", "networks", "run", "mip", "bounds", "coupling", "structure"},
    "models": {"core"},
    "certifying": {"core", "networks", "run", "bounds", "branching", "structure", "certificates", "methods"},
    "modelling": {
        "core",
        "run",
        "models",
        "bounds",
        "structure",
        "reformulations",
        "predictors",
        "certificates",
    },
    "linearised": {"core", "networks", "run", "mip", "bounds", "structure"},
    "methods": METHODS_KNOW,
    "testing": {"core", "networks", "run", "mip", "nn"},
    "problems": {"study", "study.problems"},
    "compat": {"peers", "peers.compat"},
    "study": {"core", "run", "study.problems"},
    "study.problems": {"core", "run", "testing"},
    "study.zoo": {"core", "testing", "study.problems"},
    "study.big_m": METHODS_KNOW,
    "study.single_step_gradient": METHODS_KNOW,
    "peers": set(),
    "peers.compat": {"core", "modelling", "models", "predictors"},
    "peers.migration": {"core"},
    "peers.migrate_command": {"core", "cli", "peers.migration"},
}
"""Which rooms a room may import; "study" is the experiments. `solving`, `sharding`, `sweeping`,
`problem_file` and `cli` may import all of the library, `commands` and `demo` of the study everything."""

BELOW_NETWORKS = {"arrays", "deadline", "errors", "pieces"}
"""The files of `core` that `networks` may import; the other files of `core` may import `networks`."""

STUDY_ROOMS = {"problems", "zoo", "big_m", "single_step_gradient", "commands", "demo"}
"""Files and folders of the study that are no experiments."""

BESIDE = {
    "dovetail_study": ("study", STUDY_ROOMS),
    "dovetail_peers": ("peers", {"compat", "migration", "migrate_command"}),
}
"""The packages beside the library: how the rooms of each are called here, and which there are."""

PUBLIC_NAMES = {"dovetail.problems": "dovetail_study", "dovetail.compat": "dovetail_peers"}
"""What of them has a public name in the library, a file that no other file imports."""

HOUSE_LP = {
    "mip/highs.py",
    "branching/confirmed.py",
    "bounds/safe_lp.py",
    "branching/relaxation.py",
    "linearised/trust_region.py",
    "linearised/prices.py",
    "linearised/sensitivity.py",
    "methods/cell_columns/frontier.py",
    "methods/cell_descent/descent.py",
    "branching/network_cells.py",
    "decomposition/choice.py",
    "decomposition/share.py",
}
"""The files that use HiGHS directly, as the house LP; `mip/loaded_highs.py` says why there is no protocol."""

HOUSE_MIP = {
    "methods/elastic.py",
    "linearised/starts.py",
    "methods/clearing.py",
    "mip/piqp.py",
    "solving/job.py",
}
"""The files that ask `HighsEngine` by name, for programs in which the user has no say."""

OPTIONAL = {
    "pyscipopt": {"mip/scip.py", "models/scip.py"},
    "pyscipopt_ml": {"dovetail_study/big_m/scip_formulation.py"},
    "pandas": {"run/trace.py"},
    "highspy": {"mip/highs_threads.py", "mip/loaded_highs.py", "models/highs.py"},
    "piqp": {"mip/loaded_piqp.py"},
    "gurobipy": {"models/gurobi.py"},
    "pyomo": {"models/pyomo_block.py", "dovetail_peers/compat/omlt/block.py"},
    "linopy": {"models/linopy_model.py"},
    "xarray": {"models/linopy_model.py"},
    "matplotlib": {"dovetail_study/figures.py", "report/matplotlib_plot.py"},
    "jinja2": {"report/page/templates.py"},
    "onnx": {"predictors/onnx/file.py", "dovetail_study/zoo/rewriting.py"},
    "sklearn": {
        "predictors/scikit_learn/network.py",
        "predictors/scikit_learn/predictor.py",
        "dovetail_study/zoo/rewriting.py",
        "dovetail_study/zoo/learners.py",
    },
    "keras": {"predictors/keras_model.py", "dovetail_study/zoo/rewriting.py"},
    "ray": {"run/ray_cluster.py"},
    "triton": {f"decomposition/triton_{what}.py" for what in ("descent", "step")}
    | {f"bounds/planes/triton_{what}.py" for what in ("lines", "prices")},
    "pytest": {f"testing/{part}_suite.py" for part in ("engine", "method", "predictor", "sub_solver")},
}
"""The only files that may import a library."""


def room(module):
    """The room that a module is in; None where the module stands above all rooms, or is not ours."""
    package, name = [*module.split("."), ""][:2]
    if package in BESIDE:
        whole, rooms = BESIDE[package]
        return f"{whole}.{name}" if name in rooms else whole
    return name if package == "dovetail" and (ROOT / name).is_dir() and name else None


def place(path):
    """How the lists above name a file: from the library's folder, or with its package's name before it."""
    return str(path.relative_to(SRC)).removeprefix("dovetail/")


FILES = {path: room(".".join(path.relative_to(SRC).with_suffix("").parts)) for path in SRC.rglob("*.py")}
"""Every file with its room."""


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


@pytest.mark.parametrize("name", ALLOWED)
def test_the_star(name):
    files = [path for path in sorted(FILES) if FILES[path] == name]
    assert files
    for path in files:
        for module in imported(path):
            target = room(module)
            assert target in {None, name} | ALLOWED[name], f"{place(path)} imports {module}"


def test_networks_know_nothing_of_problems():
    for path in (path for path in FILES if FILES[path] == "networks"):
        read = {name.split(".")[2] for name in imported(path) if name.startswith("dovetail.core.")}
        assert read <= BELOW_NETWORKS, place(path)


@pytest.mark.parametrize(
    ("package", "users"),
    [("dovetail_study", {"problems/__init__.py", "__init__.py"}), ("dovetail_peers", {"compat/__init__.py"})],
)
def test_the_library_never_imports_what_stands_beside_it(package, users):
    """Its public name does, and `__init__.py` in a block that only type checkers read."""
    found = {path for path in ROOT.rglob("*.py") if package in " ".join(imported(path))}
    assert {place(path) for path in found} == users


@pytest.mark.parametrize("public", PUBLIC_NAMES)
def test_public_names_are_for_users(public):
    users = {
        place(path) for path in FILES if any(f"{name}.".startswith(f"{public}.") for name in imported(path))
    }
    assert not users, f"in this repository it is imported from {PUBLIC_NAMES[public]}"


@pytest.mark.parametrize(("module", "files"), [("loaded_highs", HOUSE_LP), ("highs", HOUSE_MIP)])
def test_only_these_files_use_highs_directly(module, files):
    """All others take the engine that the user chose, from the table."""
    assert {place(path) for path in FILES if f"dovetail.mip.{module}" in imported(path)} == files


def test_experiments_use_public_names_only():
    """But for the table they are listed in, a sub-solver written as anyone would, and the process pool."""
    for path in (path for path in FILES if FILES[path] == "study"):
        inner = {name for name in imported(path) if name.startswith(("dovetail.core", "dovetail.run."))}
        assert not inner or path.name in ("__init__.py", "families.py", "bench.py"), path


def test_optional_libraries_are_imported_in_one_file_each():
    for path in FILES:
        for name in imported(path):
            root = name.split(".")[0]
            assert root not in OPTIONAL or place(path) in OPTIONAL[root], path


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
    counts modules, a hundred to the second. Nor is anything loaded that stands beside the library.
    """
    optional = {"pyscipopt", "pyscipopt_ml", "gurobipy", "gurobi_ml", "pyomo", "linopy", "xarray", "pandas"}
    optional |= {"onnx", "onnxruntime", "sklearn", "skorch", "keras", "joblib", "matplotlib", "ray"}
    solve = (
        "import sys, time; time.perf_counter = lambda: len(sys.modules) / 100.0; "
        "import dovetail as dt; "
        "first = dt.Problem(dt.Mip([1.0, 1.0], [[2.0, 3.0]], [4.0], [9.0], 0.0, 9.0, True)); "
        "began = len(sys.modules); first = dt.solve(first, time_limit=2.0, log=False); "
        "assert first.status == 'optimal' and first.seconds < 2.0 < (len(sys.modules) - began) / 100.0; "
        "beside = ('dovetail_study', 'dovetail_peers'); "
        "assert not any(name.startswith(beside) for name in sys.modules); "
        "import dovetail.cli.solve_command, dovetail.testing.problems, dovetail.sweeping.sweep; "
        "assert not any(name.startswith(beside) for name in sys.modules); "
        "[getattr(dt, name) for name in dt._PUBLIC]; import dovetail.predictors.onnx.model, torch; "
        "from dovetail.core.predictor import as_predictor; as_predictor(torch.nn.Linear(1, 1)); "
        "p = dt.Problem(dt.Mip([1.0, 1.0], lower=-1.0, upper=1.0)); "
        "dt.add_predictor_constr(p, abs, [0], [1]); dt.solve(p, dt.Auto(effort=1), log=False)"
    )
    assert not optional & modules_after(solve)


def test_the_command_line_imports_neither_torch_nor_scipy():
    heavy = {"torch", "scipy", "highspy", "piqp", "pyscipopt", "pandas", "sklearn", "matplotlib"}
    run = "from typer.testing import CliRunner; from dovetail.cli import app"
    run += "; r = CliRunner().invoke(app, ['--help'])"
    assert not heavy & modules_after(run + "; assert r.exit_code == 0")


def test_public_names_exist_and_the_rest_is_an_attribute_error():
    import dovetail

    for name in dovetail._PUBLIC:
        assert getattr(dovetail, name) is not None
    assert dir(dovetail) == sorted(dovetail.__all__) and len(dovetail.__all__) <= 35
    assert all(getattr(dovetail.paper, name) is getattr(dovetail, name) for name in dovetail.paper.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        dovetail.nonsense  # noqa: B018


def test_type_checkers_see_the_same_public_names():
    import dovetail

    (block,) = (
        node for node in ast.parse((ROOT / "__init__.py").read_text()).body if isinstance(node, ast.If)
    )
    seen = {alias.asname: node.module for node in block.body for alias in node.names}
    assert seen == dovetail._PUBLIC, "the TYPE_CHECKING block of src/dovetail/__init__.py has other names"

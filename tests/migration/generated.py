"""Programs as users of the peers write them, put together from pieces that go with each other in any way.

All solve the same small problem: whole x0, x1 in [0, 3] with x0 + x1 <= 3, the most of y + x0 / 2 where y is
what the predictor says of x. Without its predictor y is at its bound, 100.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from textwrap import dedent, indent


@dataclass(frozen=True)
class Program:
    """One program: the pieces that it is made of, and its text, which leaves the optimum in `answer`."""

    peer: str
    pieces: tuple[str, ...]
    text: str

    def __str__(self):
        return "-".join((self.peer, *self.pieces))


GRID = "GRID = [[float(a), float(b)] for a in range(4) for b in range(4)]\n"
PREDICTORS = {
    "linear": ("LinearRegression", "LinearRegression().fit(GRID, [2.0 - a + 0.3 * b for a, b in GRID])"),
    "tree": (
        "DecisionTreeRegressor",
        "DecisionTreeRegressor(max_depth=2, random_state=0).fit(GRID, [(a - 1) * (2 - b) for a, b in GRID])",
    ),
}
MODULES = {"linear": "sklearn.linear_model", "tree": "sklearn.tree"}

ADDING = {
    "from": ("from {peer}{module} import add_predictor_constr", "add_predictor_constr"),
    "renamed": ("from {peer}{module} import add_predictor_constr as tie", "tie"),
    "module": ("import {peer}", "{peer}.add_predictor_constr"),
    "module renamed": ("import {peer} as ml", "ml.add_predictor_constr"),
    "star": ("from {peer} import *", "add_predictor_constr"),
    "by getattr": ("import {peer}", 'getattr({peer}, "add_predictor_constr")'),
    "by name": ("import importlib\nml = importlib.import_module('{peer}')", "ml.add_predictor_constr"),
}
"""How the function of the peer comes into the program, and how it is called."""

ATTACHING = {
    "directly": ("", "{add}({model}, PREDICTOR, {x}, {y})"),
    "alias": ("add = {add}", "add({model}, PREDICTOR, {x}, {y})"),
    "partial": (
        "import functools\nwith_predictor = functools.partial({add}, predictor=PREDICTOR)",
        "with_predictor({model}, input_vars={x}, output_vars={y})",
    ),
    "table": ('ADDERS = {{"predictor": {add}}}', 'ADDERS["predictor"]({model}, PREDICTOR, {x}, {y})'),
    "helper": (
        "def attached(to, add, inputs, outputs):\n    return add(to, PREDICTOR, inputs, outputs)",
        "attached({model}, {add}, {x}, {y})",
    ),
    "lambda": ("attach = lambda m, a, b: {add}(m, PREDICTOR, a, b)", "attach({model}, {x}, {y})"),
}
"""What stands before the model, and the line that attaches the predictor."""

SETTINGS = {
    "gurobi_ml": {
        "none": "pass",
        "params": "{model}.Params.TimeLimit = 60; {model}.Params.Threads = 1",
        "setParam": '{model}.setParam("MIPGap", 1e-6); {model}.setParam("Heuristics", 0.1)',
    },
    "pyscipopt_ml": {
        "none": "pass",
        "setParam": '{model}.setParam("limits/time", 60)',
        "setParams": '{model}.setParams({{"limits/gap": 1e-6, "separating/maxrounds": 3}})',
    },
}

SOLVING = {
    "plain": "{model}.optimize()",
    "bound": "go = {model}.optimize\ngo()",
    "by getattr": 'getattr({model}, "optimize")()',
    "by its class": "{class_}.optimize({model})",
    "in a loop": "for each in [{model}]:\n    each.optimize()",
    "helper": "solved({model})",
    "methodcaller": 'operator.methodcaller("optimize")({model})',
    "a copy": "{copy}\ntwin.optimize()\n{model} = twin",
    "walrus": "(held := {model}).optimize()",
    "conditional": "if True:\n    {model}.optimize()",
}
"""How the model is solved."""

STRUCTURES = {
    "flat": """
        {new}
        {build}
        {attach}
        {settings}
        {solve}
        answer = {objective}
        """,
    "two functions": """
        def build():
            {new}
            {build}
            {attach}
            {settings}
            return {model}

        def run(model):
            {solve@model}
            return {objective@model}

        answer = run(build())
        """,
    "a class that holds it": """
        class Plan:
            def __init__(self):
                {new}
                {build}
                {attach}
                self.model = {model}

            def solve(self):
                {settings@self.model}
                {solve@self.model}
                return {objective@self.model}

        answer = Plan().solve()
        """,
    "a class that is one": """
        class Plan({class_}):
            def fill(self):
                {build@self}
                {attach@self}
                return self

            def best(self):
                super().optimize()
                return {objective@self}

        plan = Plan({made}).fill()
        answer = plan.best()
        """,
    "its own optimize": """
        class Plan:
            def __init__(self):
                {new}
                {build}
                {attach}
                self.held = {model}

            def optimize(self):
                {solve@self.held}
                return {objective@self.held}

        plan = Plan()
        answer = plan.optimize()
        """,
    "a context": """
        @contextlib.contextmanager
        def planned():
            {new}
            {build}
            {attach}
            yield {model}

        with planned() as plan:
            {settings@plan}
            {solve@plan}
            answer = {objective@plan}
        """,
    "a table of models": """
        models = {{}}
        {new}
        {build}
        models["plan"] = {model}
        {attach@models["plan"]}
        {solve@models["plan"]}
        answer = {objective@models["plan"]}
        """,
    "two models": """
        {class_made}
        {new}
        {build}
        {attach}
        other = {class_}({made})
        {silence@other}
        other.optimize()
        {settings}
        {solve}
        answer = {objective}
        """,
}

TOOLS = {
    "gurobi_ml": {
        "head": "import gurobipy as gp\nENV = gp.Env(params={'OutputFlag': 0})\n",
        "module": "",
        "class_": "gp.Model",
        "made": "env=ENV",
        "new": "m = gp.Model(env=ENV)",
        "silence": "pass",
        "build": """
            x = {model}.addMVar(2, ub=3.0, vtype="I")
            y = {model}.addMVar(1, lb=-100.0, ub=100.0)
            {model}.addConstr(x.sum() <= 3)
            {model}.setObjective(y.sum() + 0.5 * x[0].sum(), gp.GRB.MAXIMIZE)
            {model}.update()
            """,
        "x": "x",
        "y": "y",
        "objective": "{model}.ObjVal",
        "copy": "{model}.update()\ntwin = {model}.copy()",
    },
    "pyscipopt_ml": {
        "head": "from pyscipopt import Model\n",
        "module": ".add_predictor",
        "class_": "Model",
        "made": "",
        "new": "m = Model()\nm.hideOutput()",
        "silence": "{model}.hideOutput()",
        "build": """
            x = {model}.addMatrixVar((1, 2), lb=0, ub=3, vtype="I")
            y = {model}.addMatrixVar((1, 1), lb=-100, ub=100)
            {model}.addCons(x[0, 0] + x[0, 1] <= 3)
            {model}.setObjective(y[0, 0] + 0.5 * x[0, 0], "maximize")
            """,
        "x": "x",
        "y": "y",
        "objective": "{model}.getObjVal()",
        "copy": "twin = Model(sourceModel={model})",
    },
}


def written(peer, pieces):
    """The program of these pieces."""
    predictor, adding, attaching, structure, setting, solving = pieces
    tool, kind, fitted = TOOLS[peer], *PREDICTORS[predictor]
    imported, add = (text.format(peer=peer, module=tool["module"]) for text in ADDING[adding])
    before, attach = ATTACHING[attaching]
    blanks = {
        "new": tool["new"],
        "build": dedent(tool["build"]).strip(),
        "attach": attach.replace("{add}", add).replace("{x}", tool["x"]).replace("{y}", tool["y"]),
        "settings": SETTINGS[peer][setting],
        "solve": SOLVING[solving].replace("{copy}", tool["copy"]).replace("{class_}", tool["class_"]),
        "objective": tool["objective"],
        "silence": tool["silence"],
        "class_": tool["class_"],
        "class_made": "pass",
        "made": tool["made"],
    }
    head = (
        f"import contextlib, operator\n{tool['head']}from {MODULES[predictor]} import {kind}\n{imported}\n"
        f"{GRID}PREDICTOR = {fitted}\n{before.format(add=add)}\n\n"
        "def solved(problem):\n    problem.optimize()\n\n"
    )
    return Program(peer, pieces, head + filled(STRUCTURES[structure], blanks, "m"))


def filled(structure, blanks, model):
    """A structure with its blanks filled in; `{blank@name}` speaks of a model under that name."""
    lines = []
    for line in dedent(structure).strip().splitlines():
        margin = " " * (len(line) - len(line.lstrip()))
        for blank, text in blanks.items():
            for mark in [f"{{{blank}}}", *_named(line, blank)]:
                name = mark[1:-1].partition("@")[2] or model
                line = line.replace(mark, text.replace("{model}", name).replace("{{", "{").replace("}}", "}"))
        body = line.replace("{model}", model).replace("{{", "{").replace("}}", "}").strip()
        lines.append(indent(body, margin))
    return "\n".join(lines) + "\n"


def _named(line, blank):
    """The marks of a blank in a line that name a model."""
    start = line.find(f"{{{blank}@")
    return [line[start : line.index("}", start) + 1]] if start >= 0 else []


NETWORK = """
from onnx import helper
numbers = helper.make_tensor_value_info
weights = [
    helper.make_tensor("w", 11, [2, 2], [1.0, -1.0, 0.5, 1.0]),
    helper.make_tensor("b", 11, [2], [-1.0, 0.5]),
    helper.make_tensor("v", 11, [2, 1], [-1.0, 0.75]),
]
nodes = [
    helper.make_node("Gemm", ["x", "w", "b"], ["a"]),
    helper.make_node("Relu", ["a"], ["r"]),
    helper.make_node("MatMul", ["r", "v"], ["y"]),
]
graph = helper.make_graph(nodes, "net", [numbers("x", 11, [None, 2])], [numbers("y", 11, [None, 1])], weights)
NETWORK = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
"""

OMLT_IMPORTS = {
    "from": (
        "from omlt import OmltBlock\nfrom omlt.io import load_onnx_neural_network\n"
        "from omlt.neuralnet import FullSpaceNNFormulation",
        "OmltBlock()",
        "FullSpaceNNFormulation(load_onnx_neural_network({what}))",
    ),
    "module": (
        "import omlt, omlt.io, omlt.neuralnet",
        "omlt.OmltBlock()",
        "omlt.neuralnet.FullSpaceNNFormulation(omlt.io.load_onnx_neural_network({what}))",
    ),
    "module renamed": (
        "import omlt as o\nimport omlt.io as readers\nimport omlt.neuralnet as nets",
        "o.OmltBlock()",
        "nets.FullSpaceNNFormulation(readers.load_onnx_neural_network({what}))",
    ),
    "star": (
        "from omlt import *\nfrom omlt.io import *\nfrom omlt.neuralnet import *",
        "OmltBlock()",
        "FullSpaceNNFormulation(load_onnx_neural_network({what}))",
    ),
}
BOUNDS = {"bounded": "NETWORK, input_bounds={0: (0.0, 3.0), 1: (0.0, 3.0)}", "unbounded": "NETWORK"}
TYING = {
    "directly": ("", "{model}.nn.build_formulation({formulation})"),
    "alias": ("", "build_it = {model}.nn.build_formulation\nbuild_it({formulation})"),
    "helper": ("def tied(block):\n    block.build_formulation({formulation})", "tied({model}.nn)"),
    "by getattr": ("", 'getattr({model}.nn, "build_formulation")({formulation})'),
}
SOLVERS = {
    "in one line": 'pyo.SolverFactory("appsi_highs").solve({model})',
    "named": 'solver = pyo.SolverFactory("appsi_highs")\nresults = solver.solve({model})',
    "with": 'with pyo.SolverFactory("appsi_highs") as solver:\n    solver.solve({model})',
    "renamed": 'factory = pyo.SolverFactory\nfactory("appsi_highs").solve({model})',
    "helper": "solved({model})",
    "made by a helper": "opt = made_solver()\nopt.solve({model}, tee=False)",
    "handed to a helper": 'solved_by(pyo.SolverFactory("appsi_highs"), {model})',
    "bound": 'go = pyo.SolverFactory("appsi_highs").solve\ngo({model})',
    "by getattr": 'getattr(pyo.SolverFactory("appsi_highs"), "solve")({model})',
    "a table": 'solvers = {"highs": pyo.SolverFactory("appsi_highs")}\nsolvers["highs"].solve({model})',
    "options": 'opt = pyo.SolverFactory("appsi_highs")\nopt.options["time_limit"] = 60.0\nopt.solve({model})',
    "appsi": "from pyomo.contrib.appsi.solvers import Highs\nHighs().solve({model})",
    "a copy": 'twin = {model}.clone()\npyo.SolverFactory("appsi_highs").solve(twin)\n{model} = twin',
    "class": "Solves().best({model})",
}
PYOMO_HELPERS = """
def solved(problem):
    SolverFactory("appsi_highs").solve(problem)

def made_solver():
    return pyo.SolverFactory("appsi_highs")

def solved_by(solver, problem):
    return solver.solve(problem)

class Solves:
    def __init__(self):
        self.solver = pyo.SolverFactory("appsi_highs")

    def best(self, problem):
        self.solver.solve(problem)

"""
OMLT_BUILD = """
    {model}.x = pyo.Var([0, 1], bounds=(0, 3), domain=pyo.Integers)
    {model}.nn = {block}
    {tie}
    {model}.nn.outputs[0].setub(100.0)
    {model}.into = pyo.Constraint([0, 1], rule=lambda b, i: b.nn.inputs[i] == b.x[i])
    {model}.row = pyo.Constraint(expr={model}.x[0] + {model}.x[1] <= 3)
    {model}.goal = pyo.Objective(expr={model}.nn.outputs[0] + 0.5 * {model}.x[0], sense=pyo.maximize)
    """
OMLT_STRUCTURES = ("flat", "two functions", "a class that holds it", "a context")


def written_for_omlt(pieces):
    """The program of these pieces."""
    importing, bounded, tying, structure, solving = pieces
    imported, block, loaded = OMLT_IMPORTS[importing]
    formulation = loaded.format(what=BOUNDS[bounded])
    before, tie = (text.replace("{formulation}", formulation) for text in TYING[tying])
    build = dedent(OMLT_BUILD).strip().replace("{block}", block).replace("{tie}", tie)
    blanks = {
        "new": "m = pyo.ConcreteModel()",
        "build": build,
        "attach": "pass",
        "settings": "pass",
        "solve": SOLVERS[solving],
        "objective": "pyo.value({model}.goal)",
    }
    head = (
        "import contextlib\nimport pyomo.environ as pyo\nfrom pyomo.environ import SolverFactory\n"
        f"{imported}\n{NETWORK}\n{before}\n{PYOMO_HELPERS}"
    )
    return Program("omlt", pieces, head + filled(STRUCTURES[structure], blanks, "m"))


def programs(count, seed):
    """So many programs of each peer: every piece as often as the others of its kind, in random company."""
    for peer in TOOLS:
        tables = PREDICTORS, ADDING, ATTACHING, STRUCTURES, SETTINGS[peer], SOLVING
        yield from (written(peer, pieces) for pieces in drawn(tables, count, seed))
    tables = OMLT_IMPORTS, BOUNDS, TYING, OMLT_STRUCTURES, SOLVERS
    yield from map(written_for_omlt, drawn(tables, count, seed))


def drawn(tables, count, seed):
    """Combinations of one piece of each table."""
    chance = random.Random(seed)
    decks = []
    for table in tables:
        rounds = (chance.sample(list(table), len(table)) for _ in range(-(-count // len(table))))
        decks.append([piece for deck in rounds for piece in deck])
    return list(zip(*decks, strict=False))[:count]

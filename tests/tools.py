"""The modelling tools, each in its own words: how its users write, change, export and solve a model."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod

import gurobipy as gp
import highspy
import linopy
import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pyscipopt
from pyomo.common.modeling import unique_component_name

from dovetail.core.foreign import as_array, locate


class Tool(ABC):
    """What tests do with a model. Terms are pairs of a weight and a variable."""

    name = ""
    plain = False
    """No two-sided rows, no constants in the objective."""

    def __str__(self):
        return self.name

    @abstractmethod
    def new(self):
        """An empty model."""

    @abstractmethod
    def add(self, model, name, lower=0.0, upper=1.0, integer=False):
        """One variable."""

    @abstractmethod
    def variables(self, model, shape, lower, upper, *, integer=False):
        """A group of variables in the tool's own container."""

    def at(self, group, place):
        return group[place]

    @abstractmethod
    def row(self, model, terms, lower, upper, name=""):
        """One row."""

    @abstractmethod
    def objective(self, model, terms, sense, offset=0.0):
        """What is minimised or maximised."""

    @abstractmethod
    def set_upper(self, model, variable, upper):
        """A new upper bound."""

    @abstractmethod
    def remove(self, model, variable, *kept):
        """Take a variable out; `kept` are those made after it."""

    @abstractmethod
    def text(self, model, folder):
        """The whole model as text."""

    @abstractmethod
    def optimum(self, model):
        """The objective at the point the tool itself finds."""

    def minimise(self, model, terms):
        self.objective(model, terms, "min")

    def at_most(self, model, terms, limit):
        self.row(model, terms, -np.inf, limit)

    def write(self, arrays):
        """A program with columns x0, x1, ... and rows r0, r1, ...; also returns the variables."""
        model = self.new()
        limits = zip(arrays.lower, arrays.upper, arrays.integer, strict=True)
        x = [self.add(model, f"x{j}", *limit) for j, limit in enumerate(limits)]
        for i, row in enumerate(arrays.A):
            terms = [(float(row[j]), x[j]) for j in np.flatnonzero(row)]
            self.row(model, terms, float(arrays.row_lower[i]), float(arrays.row_upper[i]), f"r{i}")
        terms = [(float(cost), variable) for cost, variable in zip(arrays.cost, x, strict=True)]
        self.objective(model, terms, arrays.sense, arrays.offset)
        return model, x


class Scip(Tool):
    name = "pyscipopt"

    def new(self):
        model = pyscipopt.Model()
        model.hideOutput()
        return model

    def add(self, model, name, lower=0.0, upper=1.0, integer=False):
        return model.addVar(name, vtype="I" if integer else "C", lb=finite(lower), ub=finite(upper))

    def variables(self, model, shape, lower, upper, *, integer=False):
        kind = "I" if integer else "C"
        return model.addMatrixVar(shape, lb=finite(lower), ub=finite(upper), vtype=kind)

    def row(self, model, terms, lower, upper, name=""):
        body = pyscipopt.quicksum(weight * variable for weight, variable in terms)
        if lower == upper:
            model.addCons(body == lower, name=name)
        elif np.isinf(lower):
            model.addCons(body <= upper, name=name)
        elif np.isinf(upper):
            model.addCons(body >= lower, name=name)
        else:
            model.addCons((lower <= body) <= upper, name=name)

    def objective(self, model, terms, sense, offset=0.0):
        goal = pyscipopt.quicksum(weight * variable for weight, variable in terms) + offset
        model.setObjective(goal, f"{sense}imize")

    def set_upper(self, model, variable, upper):
        model.chgVarUb(variable, upper)

    def remove(self, model, variable, *kept):
        model.delVar(variable)

    def text(self, model, folder):
        path = folder / "model.cip"
        model.writeProblem(str(path), verbose=False)
        return path.read_text()

    def optimum(self, model):
        model.optimize()
        return model.getObjVal()


class Highs(Tool):
    name = "highspy"

    def new(self):
        model = highspy.Highs()
        model.setOptionValue("output_flag", False)
        return model

    def add(self, model, name, lower=0.0, upper=1.0, integer=False):
        return model.addVariable(lower, upper, type=self._kind(integer), name=name)

    def variables(self, model, shape, lower, upper, *, integer=False):
        return model.addVariables(*shape, lb=float(lower), ub=float(upper), type=self._kind(integer))

    def _kind(self, integer):
        return highspy.HighsVarType.kInteger if integer else highspy.HighsVarType.kContinuous

    def row(self, model, terms, lower, upper, name=""):
        columns = np.array([variable.index for _, variable in terms])
        weights = np.array([weight for weight, _ in terms])
        model.addRow(lower, upper, columns.size, columns, weights)
        if name:
            model.passRowName(model.getNumRow() - 1, name)

    def objective(self, model, terms, sense, offset=0.0):
        senses = {"min": highspy.ObjSense.kMinimize, "max": highspy.ObjSense.kMaximize}
        model.changeObjectiveSense(senses[sense])
        model.changeObjectiveOffset(offset)
        for weight, variable in terms:
            model.changeColCost(variable.index, weight)

    def set_upper(self, model, variable, upper):
        model.changeColBounds(variable.index, model.getLp().col_lower_[variable.index], upper)

    def remove(self, model, variable, *kept):
        model.deleteVariable(variable, *kept)  # highspy moves up only those it is told of

    def text(self, model, folder):
        lp, matrix = model.getLp(), model.getLp().a_matrix_
        # what HiGHS may write in several ways: names that are empty, kinds, and by which axis entries go
        names = [[*filter(None, held)] for held in (lp.col_names_, lp.row_names_)]
        integers = [k for k, kind in enumerate(lp.integrality_) if kind != highspy.HighsVarType.kContinuous]
        major = np.repeat(np.arange(len(matrix.start_) - 1), np.diff(matrix.start_)).tolist()
        places = [major, matrix.index_]
        places = places if matrix.format_ == highspy.MatrixFormat.kRowwise else places[::-1]
        entries = sorted(zip(*places, matrix.value_, strict=True))
        columns = lp.col_cost_, lp.col_lower_, lp.col_upper_, integers
        parts = *names, *columns, entries, lp.row_lower_, lp.row_upper_
        return repr([lp.sense_, lp.offset_, *map(list, parts)])

    def optimum(self, model):
        model.run()
        return model.getObjectiveValue()


class Gurobi(Tool):
    name = "gurobipy"

    def new(self):
        return gp.Model(env=gp.Env(params={"OutputFlag": 0}))

    def add(self, model, name, lower=0.0, upper=1.0, integer=False):
        return model.addVar(lb=lower, ub=upper, vtype="I" if integer else "C", name=name)

    def variables(self, model, shape, lower, upper, *, integer=False):
        return model.addMVar(shape, lb=lower, ub=upper, vtype="I" if integer else "C")

    def at(self, group, place):
        return group[place].item()

    def row(self, model, terms, lower, upper, name=""):
        body = gp.LinExpr(terms)
        if lower == upper:
            model.addConstr(body == lower, name=name)
        elif np.isinf(lower):
            model.addConstr(body <= upper, name=name)
        elif np.isinf(upper):
            model.addConstr(body >= lower, name=name)
        else:
            model.addRange(body, lower, upper, name=name)

    def objective(self, model, terms, sense, offset=0.0):
        senses = {"min": gp.GRB.MINIMIZE, "max": gp.GRB.MAXIMIZE}
        model.setObjective(gp.LinExpr(terms) + offset, senses[sense])

    def set_upper(self, model, variable, upper):
        variable.UB = upper

    def remove(self, model, variable, *kept):
        model.remove(variable)

    def text(self, model, folder):
        model.update()
        path = folder / "model.mps"
        model.write(str(path))
        return path.read_text()

    def optimum(self, model):
        model.optimize()
        return model.ObjVal


class Pyomo(Tool):
    name = "pyomo"

    def new(self):
        return pyo.ConcreteModel()

    def add(self, model, name, lower=0.0, upper=1.0, integer=False):
        variable = pyo.Var(domain=self._domain(integer), bounds=(float(lower), float(upper)))
        model.add_component(name, variable)
        return variable

    def variables(self, model, shape, lower, upper, *, integer=False):
        bounds = finite(lower), finite(upper)
        group = pyo.Var(*(range(size) for size in shape), bounds=bounds, domain=self._domain(integer))
        model.add_component(unique_component_name(model, "v"), group)
        return group

    def _domain(self, integer):
        return pyo.Integers if integer else pyo.Reals

    def row(self, model, terms, lower, upper, name=""):
        body = pyo.quicksum(weight * variable for weight, variable in terms)
        row = pyo.Constraint(expr=body == lower if lower == upper else (lower, body, upper))
        model.add_component(name or unique_component_name(model, "row"), row)

    def objective(self, model, terms, sense, offset=0.0):
        goal = pyo.quicksum(weight * variable for weight, variable in terms) + offset
        model.del_component("goal")
        model.goal = pyo.Objective(expr=goal, sense=pyo.maximize if sense == "max" else pyo.minimize)

    def set_upper(self, model, variable, upper):
        variable.setub(upper)

    def remove(self, model, variable, *kept):
        model.del_component(variable.parent_component())

    def text(self, model, folder):
        path, plain = folder / "model.txt", model.clone()
        for variable in plain.component_data_objects(pyo.Var):
            if not variable.fixed:  # a solution is no part of the model
                variable.set_value(None)
                variable.stale = True
        with path.open("w") as file:
            plain.pprint(ostream=file)
        return path.read_text()

    def optimum(self, model):
        pyo.SolverFactory("appsi_highs").solve(model)
        return pyo.value(model.goal)


class Linopy(Tool):
    name = "linopy"
    plain = True

    def new(self):
        logging.getLogger("linopy").setLevel(logging.ERROR)
        return linopy.Model()

    def add(self, model, name, lower=0.0, upper=1.0, integer=False):
        return model.add_variables(lower=lower, upper=upper, integer=bool(integer), name=name)

    def variables(self, model, shape, lower, upper, *, integer=False):
        coords = [pd.RangeIndex(size, name=f"axis{k}") for k, size in enumerate(shape)]
        return model.add_variables(lower=lower, upper=upper, coords=coords, integer=integer)

    def at(self, group, place):
        return group.at[place]

    def row(self, model, terms, lower, upper, name=""):
        body, name = self._sum(terms), name or None
        if lower == upper:
            model.add_constraints(body == lower, name=name)
        elif np.isinf(lower):
            model.add_constraints(body <= upper, name=name)
        else:
            model.add_constraints(body >= lower, name=name)

    def objective(self, model, terms, sense, offset=0.0):
        model.add_objective(self._sum(terms), sense=sense, overwrite=True)

    def _sum(self, terms):
        """Of variables without an axis, and of entries of those that have some."""
        total = None
        for weight, variable in terms:
            term = weight * (variable.to_linexpr() if hasattr(variable, "to_linexpr") else variable)
            total = term if total is None else total + term
        return total

    def _place(self, model, variable):
        label = variable.label if hasattr(variable, "label") else variable.labels.item()
        return model.variables.get_label_position(label)

    def set_upper(self, model, variable, upper):
        name, place = self._place(model, variable)
        bounds = model.variables[name].upper.copy()
        bounds.loc[place] = upper
        model.variables[name].update(upper=bounds)

    def remove(self, model, variable, *kept):
        model.remove_variables(self._place(model, variable)[0])

    def text(self, model, folder):
        path = folder / "model.lp"
        model.to_file(path, progress=False)
        return path.read_text()

    def optimum(self, model):
        model.solve("highs", output_flag=False, progress=False)
        return model.objective.value


def finite(bound):
    """None for a bound that is none."""
    return None if np.isinf(bound) else bound


TOOLS = (Scip(), Highs(), Gurobi(), Pyomo(), Linopy())


def numbers(values):
    """Values that came by keys or with labels, as one array."""
    return as_array(values, lambda item: item).astype(float)


def named(foreign, given):
    """The names of the columns that some variables of a model are."""
    reading = foreign.read()
    places = locate(foreign, reading, "given", foreign.unpack(given))
    return [reading.mip.names[j] for j in places.column.ravel()]

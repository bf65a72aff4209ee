"""The few things tests do with a model, in each modelling tool's own words."""

from __future__ import annotations

import numpy as np


class Scip:
    def new(self):
        from pyscipopt import Model

        model = Model()
        model.hideOutput()
        return model

    def variables(self, model, shape, lower, upper, *, integer=False):
        low, high = (None if np.isinf(bound) else bound for bound in (lower, upper))
        return model.addMatrixVar(shape, lb=low, ub=high, vtype="I" if integer else "C")

    def at(self, group, place):
        return group[place]

    def minimise(self, model, terms):
        model.setObjective(sum(weight * variable for weight, variable in terms))

    def at_most(self, model, terms, limit):
        model.addCons(sum(weight * variable for weight, variable in terms) <= limit)

    def set_upper(self, model, variable, upper):
        model.chgVarUb(variable, upper)

    def remove(self, model, variable):
        model.delVar(variable)

    def text(self, model, folder):
        path = folder / "model.cip"
        model.writeProblem(str(path), verbose=False)
        return path.read_text()


class Highs:
    def new(self):
        import highspy

        model = highspy.Highs()
        model.setOptionValue("output_flag", False)
        return model

    def variables(self, model, shape, lower, upper, *, integer=False):
        import highspy

        kinds = highspy.HighsVarType
        kind = kinds.kInteger if integer else kinds.kContinuous
        return model.addVariables(*shape, lb=float(lower), ub=float(upper), type=kind)

    at = Scip.at

    def minimise(self, model, terms):
        model.setMinimize()
        for weight, variable in terms:
            model.changeColCost(variable.index, weight)

    def at_most(self, model, terms, limit):
        model.addConstr(sum(weight * variable for weight, variable in terms) <= limit)

    def set_upper(self, model, variable, upper):
        model.changeColBounds(variable.index, model.getLp().col_lower_[variable.index], upper)

    def remove(self, model, variable):
        model.deleteVariable(variable, [variable])

    def text(self, model, folder):
        lp = model.getLp()
        held = (lp.col_cost_, lp.col_lower_, lp.col_upper_, lp.row_lower_, lp.row_upper_, lp.a_matrix_.value_)
        return repr([list(part) for part in held])


class Gurobi:
    def new(self):
        import gurobipy as gp

        return gp.Model(env=gp.Env(params={"OutputFlag": 0}))

    def variables(self, model, shape, lower, upper, *, integer=False):
        return model.addMVar(shape, lb=lower, ub=upper, vtype="I" if integer else "C")

    def at(self, group, place):
        return group[place].item()

    def minimise(self, model, terms):
        model.setObjective(sum(weight * variable for weight, variable in terms))

    def at_most(self, model, terms, limit):
        model.addConstr(sum(weight * variable for weight, variable in terms) <= limit)

    def set_upper(self, model, variable, upper):
        variable.UB = upper

    def remove(self, model, variable):
        model.remove(variable)
        model.update()

    def text(self, model, folder):
        model.update()
        path = folder / "model.lp"
        model.write(str(path))
        return path.read_text()


class Pyomo:
    def new(self):
        import pyomo.environ as pyo

        return pyo.ConcreteModel()

    def variables(self, model, shape, lower, upper, *, integer=False):
        import pyomo.environ as pyo
        from pyomo.common.modeling import unique_component_name

        bounds = tuple(None if np.isinf(bound) else bound for bound in (lower, upper))
        domain = pyo.Integers if integer else pyo.Reals
        group = pyo.Var(*(range(size) for size in shape), bounds=bounds, domain=domain)
        model.add_component(unique_component_name(model, "v"), group)
        return group

    at = Scip.at

    def minimise(self, model, terms):
        import pyomo.environ as pyo

        model.goal = pyo.Objective(expr=sum(weight * variable for weight, variable in terms))

    def at_most(self, model, terms, limit):
        import pyomo.environ as pyo

        model.row = pyo.Constraint(expr=sum(weight * variable for weight, variable in terms) <= limit)

    def set_upper(self, model, variable, upper):
        variable.setub(upper)

    def remove(self, model, variable):
        model.del_component(variable.parent_component())

    def text(self, model, folder):
        path = folder / "model.txt"
        with path.open("w") as file:
            model.pprint(ostream=file)
        return path.read_text()


class Linopy:
    def new(self):
        import linopy

        return linopy.Model()

    def variables(self, model, shape, lower, upper, *, integer=False):
        import pandas as pd

        coords = [pd.RangeIndex(size, name=f"axis{k}") for k, size in enumerate(shape)]
        return model.add_variables(lower=lower, upper=upper, coords=coords, integer=integer)

    def at(self, group, place):
        return group.at[place]

    def minimise(self, model, terms):
        model.add_objective(_expression(terms), overwrite=True)

    def at_most(self, model, terms, limit):
        model.add_constraints(_expression(terms) <= limit)

    def set_upper(self, model, variable, upper):
        name, place = model.variables.get_label_position(variable.label)
        bounds = model.variables[name].upper.copy()
        bounds.loc[place] = upper
        model.variables[name].update(upper=bounds)

    def remove(self, model, variable):
        name, _ = model.variables.get_label_position(variable.label)
        model.remove_variables(name)

    def text(self, model, folder):
        path = folder / "model.lp"
        model.to_file(path, progress=False)
        return path.read_text()


def _expression(terms):
    total = None
    for weight, variable in terms:
        term = weight * variable.to_linexpr() if hasattr(variable, "to_linexpr") else weight * variable
        total = term if total is None else total + term
    return total


KITS = {"pyscipopt": Scip(), "highspy": Highs(), "gurobipy": Gurobi(), "pyomo": Pyomo(), "linopy": Linopy()}

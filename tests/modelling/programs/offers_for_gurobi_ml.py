"""Offers to ten customers, written for gurobi-machinelearning with a scikit-learn pipeline and frame."""

import gurobipy as gp
import numpy as np
import pandas as pd
from gurobi_ml import add_predictor_constr
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

rng = np.random.default_rng(0)
past = pd.DataFrame({"age": rng.uniform(20, 70, 400), "income": rng.uniform(1, 6, 400)})
past["discount"] = rng.uniform(0, 1, 400)
bought = past.income * (0.5 + past.discount - 0.4 * past.discount**2) - 0.01 * past.age
regressor = make_pipeline(
    StandardScaler(), MLPRegressor(hidden_layer_sizes=(6,), random_state=0, max_iter=100)
).fit(past, bought)

people = pd.DataFrame({"age": rng.uniform(20, 70, 10), "income": rng.uniform(1, 6, 10)})
env = gp.Env(params={"OutputFlag": 0})
model = gp.Model(env=env)
discount = model.addMVar(10, lb=0, ub=1, name="discount")
y = model.addMVar(10, lb=-gp.GRB.INFINITY, name="bought")
model.addConstr(discount.sum() <= 3)
model.setObjective(y.sum() - 0.5 * discount.sum(), gp.GRB.MAXIMIZE)
features = people.assign(discount=discount.tolist())
pred_constr = add_predictor_constr(model, regressor, features, y)
pred_constr.print_stats()
model.Params.TimeLimit = 60

model.optimize()

error = np.max(pred_constr.get_error())
values = pred_constr.input_values
spent, profit = float(discount.X.sum()), model.ObjVal

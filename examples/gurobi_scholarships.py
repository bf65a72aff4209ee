"""Scholarships for 40 applicants, in gurobipy; a scikit-learn pipeline predicts who will accept.

One frame holds the data (score and average) and the decision (amount). The model fits the size-limited
licence that comes with gurobipy.
"""

import gurobipy as gp
import numpy as np
import pandas as pd
from gurobipy import GRB
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dovetail as dt

rng = np.random.default_rng(1)


def applicants(count: int) -> pd.DataFrame:
    """Test score and school average."""
    return pd.DataFrame({"score": rng.normal(1200, 120, count), "average": rng.uniform(2.4, 4.0, count)})


history = applicants(1000).assign(amount=rng.uniform(0, 2.5, 1000).round(1))
tempting = 2.2 * history.amount - 0.006 * (history.score - 1200) - 1.5 * (history.average - 3.2) - 1.5
accepted = (rng.logistic(size=1000) < tempting).astype(int)
pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(history, accepted)

people = applicants(40)
model = gp.Model("scholarships")
amount = model.addMVar(40, ub=2.5, name="amount")
probability = model.addMVar(40, ub=1.0, name="probability")
model.addConstr(amount.sum() <= 20.0, name="budget")
model.setObjective(probability.sum(), GRB.MAXIMIZE)

features = people.assign(amount=amount.tolist())  # numbers beside variables
constr = dt.add_predictor_constr(
    model, pipeline, features, probability, output_type="probability_1", data=history
)

result = dt.solve(model, time_limit=5)

people["amount"] = result.value(amount)
people["probability"] = constr.output_values
print(people.sort_values("amount", ascending=False).head(8).round(2).to_string())
print(f"{result.objective:.2f} students expected, error {constr.get_error().max():.1e}")
for where in result.extrapolations[:3]:
    print("beyond the training data:", where)

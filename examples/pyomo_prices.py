"""Prices of five products, in Pyomo; price -> sales by one network, sales -> service hours by another.

The second network reads the output of the first: a chain of predictors.
"""

import pyomo.environ as pyo
import torch

import dovetail as dt

PRODUCTS = range(5)


def fit(net: torch.nn.Module, inputs: torch.Tensor, targets: torch.Tensor) -> torch.nn.Module:
    """Plain least squares."""
    optimiser = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(400):
        optimiser.zero_grad()
        torch.nn.functional.mse_loss(net(inputs), targets).backward()
        optimiser.step()
    return net


torch.manual_seed(0)
offers = torch.rand(1500, 2) * torch.tensor([4.0, 1.0]) + torch.tensor([1.0, 0.0])  # price, advertising
sold = (6 + 3 * offers[:, 1]) * torch.exp(-0.45 * offers[:, 0])
demand = fit(
    torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.GELU(), torch.nn.Linear(16, 1)),
    offers,
    sold[:, None],
)
hours_needed = 0.4 * sold + 0.05 * sold**2
service = fit(
    torch.nn.Sequential(torch.nn.Linear(1, 12), torch.nn.Tanh(), torch.nn.Linear(12, 1)),
    sold[:, None],
    hours_needed[:, None],
)

model = pyo.ConcreteModel()
model.price = pyo.Var(PRODUCTS, bounds=(1.0, 5.0))
model.advertising = pyo.Var(PRODUCTS, bounds=(0.0, 1.0))
model.promoted = pyo.Var(PRODUCTS, domain=pyo.Binary)
model.sales = pyo.Var(PRODUCTS, bounds=(0.0, 10.0))
model.hours = pyo.Var(PRODUCTS)
model.staff = pyo.Constraint(expr=sum(model.hours[p] for p in PRODUCTS) <= 6.0)
model.two_at_most = pyo.Constraint(expr=sum(model.promoted[p] for p in PRODUCTS) <= 2)
model.only_promoted = pyo.Constraint(PRODUCTS, rule=lambda m, p: m.advertising[p] <= m.promoted[p])
model.lowest = pyo.Constraint(expr=sum(model.price[p] for p in PRODUCTS) <= 14.0)
model.profit = pyo.Objective(
    expr=sum((0.6 + 0.1 * p) * model.sales[p] + 0.2 * model.price[p] for p in PRODUCTS)
    - 0.5 * sum(model.advertising[p] for p in PRODUCTS),
    sense=pyo.maximize,
)

offer = [[model.price[p], model.advertising[p]] for p in PRODUCTS]
dt.add_predictor_constr(model, demand, offer, list(model.sales.values()), name="demand")
dt.add_predictor_constr(
    model, service, [[model.sales[p]] for p in PRODUCTS], list(model.hours.values()), name="service"
)

result = dt.solve(model, time_limit=5)

for what in (model.price, model.promoted, model.sales, model.hours):
    print(f"{what.name:10}", {p: round(what[p].value, 2) for p in PRODUCTS})  # the values are in the model
print(f"profit {result.objective:.3f} ({result.status.value})")

# %% [markdown]
# # Prices and demand
#
# Three products, a Pyomo model, and a network that predicts demand from the price, the competitor's price
# and advertising. Revenue is price **times** demand, a product of a decision and a prediction that a linear
# model cannot express. `dt.Product` makes this product an output of the predictor, exact, with gradients
# and valid bounds. The network is trained on made-up sales.

# %% [setup]
import matplotlib.pyplot as plt
import numpy as np
import pyomo.environ as pyo
import torch

import dovetail as dt

TIME_LIMIT = 20.0
torch.manual_seed(0)
seen = torch.rand(2000, 3) * torch.tensor([8.0, 6.0, 1.0]) + torch.tensor([2.0, 3.0, 0.0])
price, rival, advertising = seen.T
sold = 60.0 / (1.0 + torch.exp(0.9 * (price - rival) - 1.2 * advertising)) * torch.exp(-0.06 * price)

net = torch.nn.Sequential(torch.nn.Linear(3, 10), torch.nn.ReLU(), torch.nn.Linear(10, 1)).double()
optimiser = torch.optim.Adam(net.parameters(), lr=0.02)
for _ in range(400):
    optimiser.zero_grad()
    loss = torch.nn.functional.mse_loss(net(seen.double()), sold.double()[:, None])
    loss.backward()
    optimiser.step()
print(f"demand is met to {loss.item() ** 0.5:.1f} pieces (root mean square) of up to {sold.max():.0f}")

# %% [markdown]
# At most two products are advertised, the factory makes 70 pieces, and prices are multiples of 0.1.
# `keep=True` gives demand and revenue from the same call.

# %%
PRODUCTS = range(3)
RIVALS, COST = [4.0, 6.0, 8.0], [1.5, 2.5, 3.0]

model = pyo.ConcreteModel()
model.dimes = pyo.Var(PRODUCTS, domain=pyo.Integers, bounds=(20, 100))
model.price = pyo.Var(PRODUCTS, bounds=(2.0, 10.0))
model.campaign = pyo.Var(PRODUCTS, domain=pyo.Binary)
model.demand = pyo.Var(PRODUCTS, bounds=(0.0, 100.0))
model.revenue = pyo.Var(PRODUCTS, bounds=(0.0, 1000.0))
model.coins = pyo.Constraint(PRODUCTS, rule=lambda m, p: m.price[p] == 0.1 * m.dimes[p])
model.factory = pyo.Constraint(expr=sum(model.demand[p] for p in PRODUCTS) <= 70.0)
model.campaigns = pyo.Constraint(expr=sum(model.campaign[p] for p in PRODUCTS) <= 2)
model.profit = pyo.Objective(
    expr=sum(model.revenue[p] - COST[p] * model.demand[p] - 20.0 * model.campaign[p] for p in PRODUCTS),
    sense=pyo.maximize,
)

sales = dt.Product(net, output=0, input=0, keep=True)  # demand, and demand times price
dt.add_predictor_constr(
    model,
    sales,
    [[model.price[p], RIVALS[p], model.campaign[p]] for p in PRODUCTS],
    [[model.demand[p], model.revenue[p]] for p in PRODUCTS],
    name="sales",
    data=seen.numpy(),
)
result = dt.solve(model, time_limit=TIME_LIMIT, log=False)
print(f"{result.status}: profit {result.objective:.2f}, proved to be at most {result.bound:.2f}")
for p in PRODUCTS:
    said = f"price {pyo.value(model.price[p]):5.2f}, {pyo.value(model.demand[p]):5.2f} pieces"
    print(f"product {p}: {said}{', advertised' if pyo.value(model.campaign[p]) > 0.5 else ''}")

# %% [markdown]
# The values are in the Pyomo model: `pyo.value` reads them, as after any solve.

# %%
figure, axes = plt.subplots(1, 3, figsize=(8.5, 2.9), sharey=True)
grid = np.linspace(2.0, 10.0, 161)
for p, axis in enumerate(axes):
    for push, colour in ((0.0, "#9aa5b1"), (1.0, "#0f8b8d")):
        rows = torch.as_tensor(np.column_stack([grid, np.full(161, RIVALS[p]), np.full(161, push)]))
        pieces = net(rows).detach().numpy()[:, 0]
        axis.plot(grid, (grid - COST[p]) * pieces - 20.0 * push, color=colour)
    at, made = pyo.value(model.price[p]), pyo.value(model.demand[p])
    campaign = pyo.value(model.campaign[p])
    axis.plot(at, (at - COST[p]) * made - 20.0 * campaign, "o", color="#c2543b")
    axis.axvline(RIVALS[p], color="#e29a4b", linewidth=1)
    axis.set(title=f"product {p}", xlabel="price")
axes[0].set_ylabel("profit of the product")
plt.show()

# %% [markdown]
# Profit by price, without advertising (grey) and with it (teal). The orange line is the competitor's price,
# the dot the decision. The dots are not at the maxima of the curves: the products share 70 pieces, so each
# price is slightly higher than it would be alone.

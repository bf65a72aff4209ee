# %% [markdown]
# # Lot sizing with an LSTM
#
# A product is made in lots over twelve weeks, and set-ups cost money. An LSTM predicts demand from the
# season and from the promotions that we choose: a promotion raises demand in its week and lowers it in the
# weeks after. Promotions, lots and stock are therefore decided together (no promotions in the last three
# weeks, whose after-effects lie beyond the plan). The model is in linopy. Tools that write networks as
# constraints have no formulation for an LSTM.

# %% [setup]
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from linopy import Model

import dovetail as dt

# %%
WEEKS, TIME_LIMIT, STEPS = 12, 20.0, 120
week = pd.RangeIndex(WEEKS, name="week")
season = 0.5 + 0.4 * np.sin(2 * np.pi * np.arange(WEEKS) / 12)


class Demand(torch.nn.Module):
    """Demand of all weeks from promotion and season of all weeks: (n, 24) to (n, 12)."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(2, 12, batch_first=True)
        self.leave = torch.nn.Linear(12, 1)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """The first twelve features are promotions, the others the season."""
        sequence = torch.stack([features[:, :WEEKS], features[:, WEEKS:]], dim=2)
        return 20.0 * self.leave(self.lstm(sequence)[0])[:, :, 0]


# %% [setup]
def observed(promotion: torch.Tensor, season: torch.Tensor) -> torch.Tensor:
    """What customers do: they buy ahead, and forget slowly."""
    stocked, demand = torch.zeros(len(promotion)), []
    for t in range(WEEKS):
        lifted = 12.0 + 10.0 * season[:, t] + 22.0 * promotion[:, t]
        demand.append(torch.clamp(lifted - stocked, min=2.0))
        stocked = 0.6 * stocked + 4.0 * promotion[:, t]
    return torch.stack(demand, dim=1)


torch.manual_seed(0)
promoted = (torch.rand(300, WEEKS) < 0.25).float()
seasons = torch.rand(300, WEEKS)
net = Demand()
optimiser = torch.optim.Adam(net.parameters(), lr=0.03)
for _ in range(STEPS):
    optimiser.zero_grad()
    loss = torch.nn.functional.mse_loss(net(torch.cat([promoted, seasons], 1)), observed(promoted, seasons))
    loss.backward()
    optimiser.step()
print(f"the LSTM errs by {loss.item() ** 0.5:.2f} pieces a week (root of the mean square)")

# %%
model = Model()
promotion = model.add_variables(binary=True, coords=[week], name="promotion")
lots = model.add_variables(lower=0, upper=4, integer=True, coords=[week], name="lots")
setup = model.add_variables(binary=True, coords=[week], name="setup")
demand = model.add_variables(lower=0, upper=80, coords=[week], name="demand")
stock = model.add_variables(lower=0, upper=60, coords=[week], name="stock")

model.add_constraints(lots <= 4 * setup, name="set up first")
before = stock.shift(week=1).isel(week=slice(1, None))
later = slice(1, None)
balance = stock.isel(week=later) - before - 15 * lots.isel(week=later) + demand.isel(week=later)
model.add_constraints(balance == 0, name="balance")
model.add_constraints(stock.at[0] - 15 * lots.at[0] + demand.at[0] == 10, name="begin")
model.add_constraints(promotion.sum() <= 3, name="promotions")
model.add_constraints(promotion.isel(week=slice(9, None)) == 0, name="nothing late")
# a piece brings 4, a promotion costs 10, a set-up 30, a lot 20, stock 0.3 a week: cost less revenue
model.add_objective(
    10 * promotion.sum() + 30 * setup.sum() + 20 * lots.sum() + 0.3 * stock.sum() - 4 * demand.sum()
)

features = [*(promotion.at[t] for t in range(WEEKS)), *season]
dt.add_predictor_constr(model, net, features, [[demand.at[t] for t in range(WEEKS)]], name="demand")
result = dt.solve(model, time_limit=TIME_LIMIT, log=False)
print(f"{result.status}: profit {-result.objective:.1f}; more than {-result.bound:.1f} is impossible")
print("promotions in weeks", np.flatnonzero(np.asarray(result.value(promotion)) > 0.5).tolist())

# %%
with torch.no_grad():
    quiet = net(torch.as_tensor(np.concatenate([np.zeros(WEEKS), season])[None], dtype=torch.float32))[0]
figure, axis = plt.subplots(figsize=(8.0, 3.2))
weeks = np.arange(WEEKS)
axis.bar(weeks, 15 * np.asarray(result.value(lots)), color="#9aa5b1", label="made")
axis.plot(weeks, np.asarray(result.value(demand)), "o-", color="#0f8b8d", label="demand with promotions")
axis.plot(weeks, quiet, "--", color="#0f8b8d", linewidth=1, label="demand without")
axis.plot(weeks, np.asarray(result.value(stock)), color="#e29a4b", label="stock at the end of the week")
for t in np.flatnonzero(np.asarray(result.value(promotion)) > 0.5):
    axis.axvline(t, color="#c2543b", linewidth=1)
axis.set(xlabel="week", ylabel="pieces", xticks=weeks)
axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
plt.show()

# %% [markdown]
# Red lines are promotions. Production comes in few set-ups and whole lots; stock covers the rest. Demand
# after a promotion lies below the dashed line: the LSTM has learnt that customers bought ahead.
#
# **Proved:** the LSTM predicts the demand of every week; constraints and integers hold. The bound comes
# mostly from constraints and set-ups, because proofs do not use this LSTM; a better plan may exist. Nine
# free binaries have 512 combinations: for certainty, evaluate the LSTM for each and solve the remaining
# lot-sizing problems.

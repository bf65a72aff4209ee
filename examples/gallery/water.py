# %% [markdown]
# # Water treatment
#
# Fifty water samples are not potable. A network judges from nine measured features whether water is
# potable. Features can be raised and lowered, but for each feature **all** samples share a budget of two
# standard deviations up and two down. Which treatment makes most samples potable?
#
# The data is made up in the form of the public water potability set.

# %% [setup]
import matplotlib.pyplot as plt
import numpy as np
import torch

import dovetail as dt
from dovetail.problems import water

# %%
TIME_LIMIT = 25.0
judge = water.train("2x16", seed=42, epochs=25)  # nine features, two layers of 16 neurons
plant = judge.water(50)
print(judge.training)

# %% [markdown]
# Apart from the network the model is linear: treated value = measured value + up - down, one budget per
# feature and direction, and `potable` is 1 if the network's logit is at least 0. All fifty samples go
# through the network as one batch.

# %%
result = dt.solve(plant.problem, time_limit=TIME_LIMIT, log=False)
counts = plant.counts(result)
print(f"potable: {counts.untouched} of {counts.samples} untreated, {counts.potable} treated")
print(f"objective {result.objective:.0f}, bound {result.bound:.0f} ({result.bound_kind}), {result.status}")

# %% [markdown]
# The network itself evaluated the solution. The bound is proved: no treatment within these budgets makes
# more samples potable. Without `log=False` the solve prints a log; [Reading the log](../log.md) shows that
# of a similar problem.

# %%
with torch.no_grad():
    before = plant.network(torch.as_tensor(plant.samples, dtype=torch.float32)).numpy()[:, 0]
    after = plant.network(torch.as_tensor(result.value(plant.treated), dtype=torch.float32)).numpy()[:, 0]
order = np.argsort(before)
spent = np.abs(result.value(plant.treated) - plant.samples).sum(axis=1)[order]

figure, (left, right) = plt.subplots(2, 1, figsize=(7.5, 4.6), sharex=True, height_ratios=[3, 1])
left.axhline(0.0, color="#c2543b", linewidth=1)
left.vlines(range(50), before[order], after[order], color="#9aa5b1", linewidth=1)
left.plot(before[order], "o", color="#9aa5b1", markersize=3, label="as measured")
left.plot(after[order], "o", color="#0f8b8d", markersize=4, label="treated")
left.set_ylabel("logit (potable above 0)")
left.legend(loc="upper left")
right.bar(range(50), spent, color="#0f8b8d")
right.set(xlabel="sample, by its logit", ylabel="treatment")
plt.show()

# %% [markdown]
# Each sample is a column. The treatment raises samples near the limit just above it and leaves the others
# alone, because treatment of a sample that stays undrinkable is wasted. Below: the treatment of each sample
# in standard deviations, summed over features.

# %%
features = [name.replace("_", " ") for name in water.FEATURES]
moves = result.value(plant.treated) - plant.samples
figure, axis = plt.subplots(figsize=(7.5, 2.8))
axis.barh(features, np.maximum(moves, 0).sum(axis=0), color="#0f8b8d", label="raised")
axis.barh(features, np.minimum(moves, 0).sum(axis=0), color="#e29a4b", label="lowered")
for edge in (-water.BUDGET, water.BUDGET):
    axis.axvline(edge, color="#c2543b", linewidth=1)
axis.set_xlabel("standard deviations, all samples together; the budget is 2 each way")
axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
plt.show()

# %% [markdown]
# Where a bar reaches the red line the budget is used up, and a larger budget would help.
# `result.report("page.html")` writes a page with all fifty treatments.

# %% [markdown]
# # Blending wine
#
# Thirty vineyards sell wine in limited amounts at different prices. Four blends are made from them. A
# network predicts a taster's mark from eleven chemical features, and the features of a blend are the means
# of its parts. Which blends have the best mean mark?
#
# The data is made up in the form of the public red wine set.

# %% [setup]
import matplotlib.pyplot as plt
import numpy as np
import torch

import dovetail as dt
from dovetail.problems import wine

# %%
TIME_LIMIT = 15.0
cellar = wine.wine(4, 30, "2x16", seed=42, epochs=25)
print(cellar.training)

# %%
result = dt.solve(cellar.problem, time_limit=TIME_LIMIT, log=False)
print(result.status, "after", round(result.seconds), "s, stopped by", result.stop_reason)
print(f"mean mark {result.objective:.3f}; nothing above {result.bound:.3f} exists ({result.bound_kind})")

# %%
mix = result.value(cellar.mix)
alone = cellar.network(torch.as_tensor(cellar.market.features, dtype=torch.float64)).detach().numpy()[:, 0]
used = np.flatnonzero(mix.sum(axis=0) > 0.005)

figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.4), width_ratios=[1, 1.2])
bottom = np.zeros(4)
shades = plt.cm.viridis(np.linspace(0.1, 0.9, used.size))
for shade, k in zip(shades, used, strict=True):
    left.bar(range(1, 5), mix[:, k], bottom=bottom, color=shade)
    bottom += mix[:, k]
for i, mark in enumerate(result.value(cellar.quality)):
    left.text(i + 1, 1.02, f"{mark:.2f}", ha="center")
left.set(xlabel="wine, its mark above", ylabel="share of each vineyard", xticks=range(1, 5))
right.scatter(cellar.market.price, alone, color="#9aa5b1", s=18, label="left alone")
right.scatter(cellar.market.price[used], alone[used], c=shades, s=40, label="used")
right.axhline(result.objective, color="#c2543b", linewidth=1)
right.text(1.0, result.objective, "mean of the blends", color="#c2543b", va="bottom")
right.set(xlabel="price of a vineyard", ylabel="mark of its own wine, predicted")
right.legend(loc="center right")
plt.show()

# %% [markdown]
# Left: the parts of each wine. Right: the marks of the vineyards alone. Marks are not linear in the
# features, so a blend can be better than its parts: mixing reaches combinations of features that no
# vineyard has.
#
# **Proved:** the marks are the network's own. The bound is far away, so better blends may exist: one
# network with eleven free inputs is beyond today's proofs ([When not to use it](../when_not.md)).

# %% [markdown]
# # Planting trees
#
# A plot has six by six cells. Each cell gets one of four species; sterilising a cell first helps some
# species and costs effort. Four networks, one per species, predict the probability that a tree survives,
# from light, soil and sterilisation. Which trees and which sterilised cells maximise the number of
# survivors within the budget?
#
# The data is made up in the form of a published experiment; the decision model is SurrogateLIB's.

# %% [setup]
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

import dovetail as dt
from dovetail.problems import tree

# %%
TIME_LIMIT = 20.0
plot = tree.tree(6, "3x16", seed=42, epochs=15)
mip = plot.problem.mip
print(f"{mip.n_columns} columns, {int(mip.integer.sum())} of them integer; {len(plot.networks)} networks")

# %% [markdown]
# Six of a network's seven inputs are data of the cell; only sterilisation is a decision, 0 or 1. A network
# of any depth therefore has two answers per cell. dovetail puts the answers into a table, and an ordinary
# MIP remains.

# %%
result = dt.solve(plot.problem, time_limit=TIME_LIMIT, log=False)
print(f"{result.status}: {result.objective:.3f} of 36 trees survive, at most {result.bound:.3f} can")
print(plot.counts(result))

# %%
species = np.round(result.value(plot.planted)).argmax(axis=1).reshape(6, 6)
chance = result.value(plot.counted).sum(axis=1).reshape(6, 6)
sterile = np.round(result.value(plot.sterilised)).reshape(6, 6)
colours = ["#d08c60", "#5b8e7d", "#8c6fae", "#c2543b"]

figure, axis = plt.subplots(figsize=(6.4, 4.2))
axis.imshow(species, cmap=ListedColormap(colours), vmin=-0.5, vmax=3.5, alpha=0.85)
for (i, j), value in np.ndenumerate(chance):
    axis.text(j, i, f"{100 * value:.0f} %", ha="center", va="center", color="white", fontsize=9)
    if sterile[i, j]:
        axis.add_patch(plt.Rectangle((j - 0.46, i - 0.46), 0.92, 0.92, fill=False, edgecolor="white", lw=2))
axis.set(xticks=[], yticks=[], ylabel="light falls from top to bottom")
axis.legend(
    [Patch(color=colour) for colour in colours], tree.SPECIES, loc="center left", bbox_to_anchor=(1.0, 0.5)
)
plt.show()

# %% [markdown]
# The plan: colours are species, numbers survival probabilities, white frames sterilised cells. **Optimality
# is proved** to one part in a million. Written out neuron by neuron, the same model (with networks of 8
# layers) was still open for SCIP after a minute ([benchmarks](../benchmarks/anytime.md), `tree_8x32`).

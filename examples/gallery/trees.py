# %% [markdown]
# # Planting trees
#
# A plot of six by six cells. On each cell one of four species is planted; some cells may be sterilised
# first, which helps some species and costs effort. Four networks, one per species, predict the chance that a
# tree survives, from light, soil and sterilisation. Which tree where, and which cells to sterilise, so that
# most trees survive within the money?
#
# The data is made up after a published experiment; the decision model is SurrogateLIB's.

# %%
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

import dovetail as dt
from dovetail.problems import tree

TIME_LIMIT = 20.0
plot = tree.tree(6, "3x16", seed=42, epochs=15)
mip = plot.problem.mip
print(f"{mip.n_columns} columns, {int(mip.integer.sum())} of them integer; {len(plot.networks)} networks")

# %% [markdown]
# Of a network's seven inputs six are facts of the cell; only sterilisation is decided, and it is 0 or 1. So
# a network has two answers per cell, whatever its depth. dovetail sees that, puts the answers into a table,
# and what is left is an ordinary mixed-integer program.

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
# The plan: colours are species, numbers the chance of survival, white frames sterilised cells. **Optimal is
# proved** here: no other choice of trees and cells does better by these networks, within one part in a
# million. Written out neuron by neuron, the same model (with networks of 8 layers) was still open for SCIP
# after a minute ([benchmarks](../benchmarks/proof.md), `tree_8x32`).

# %% [markdown]
# # A simulator: any function, integers
#
# How many people should answer the telephone in each shift? Waiting time comes from a simulation, an
# ordinary Python function of numpy arrays. The function has no gradient and needs none here, because the
# decisions are integers.

# %% [setup]
import matplotlib.pyplot as plt
import numpy as np

import dovetail as dt

# %%
TIME_LIMIT = 20.0
SHIFTS, STEP, DAYS = ["morning", "afternoon", "evening"], 5, 40  # steps of five minutes, four hours a shift
LEAST, MOST, WAGE = 2, 7, [1.0, 1.0, 1.25]
rng = np.random.default_rng(7)
calls = rng.poisson(np.repeat([4.0, 7.0, 3.5], 48), (DAYS, 144))
# what the first k people answer in five minutes, drawn once: every plan meets the same days
answered = np.cumsum(rng.poisson(1.4, (MOST, DAYS, 144)), axis=0)


def waiting(plans: np.ndarray) -> np.ndarray:
    """(n, 3) people in each shift to (n, 3) minutes that a caller of that shift waits on average."""
    people = np.clip(np.rint(plans).astype(int), 1, MOST)
    queue, waited = np.zeros((len(plans), DAYS)), np.zeros((len(plans), 3))
    for t in range(144):
        done = answered[people[:, t // 48] - 1, :, t]
        queue = np.maximum(queue + calls[:, t] - done, 0.0)
        waited[:, t // 48] += queue.mean(axis=1) * STEP
    return waited / calls.reshape(DAYS, 3, 48).sum(axis=2).mean(axis=0)


# %% [markdown]
# Minimise wages such that the mean wait is at most three minutes in every shift and adjacent shifts differ
# by at most three people. A queue from the morning remains in the afternoon, so the shifts cannot be
# planned one by one.

# %%
mip = dt.Mip(
    cost=[*WAGE, 0.0, 0.0, 0.0],
    A=[[-1.0, 1.0, 0.0, 0.0, 0.0, 0.0], [0.0, -1.0, 1.0, 0.0, 0.0, 0.0]],
    row_lower=-3.0,
    row_upper=3.0,
    lower=[LEAST] * 3 + [0.0] * 3,
    upper=[MOST] * 3 + [3.0] * 3,
    integer=[True] * 3 + [False] * 3,
    names=[f"people[{shift}]" for shift in SHIFTS] + [f"wait[{shift}]" for shift in SHIFTS],
)
problem = dt.Problem(mip)
problem.add_predictor(waiting, [0, 1, 2], [3, 4, 5], name="call centre")
result = dt.solve(problem, time_limit=TIME_LIMIT, log=False)
print(f"{result.status}: {result.objective} wages, bound {result.bound:.4f}")
print("people", result.x[:3].astype(int).tolist(), "minutes", result.x[3:].round(2).tolist())

# %%
every = np.stack(np.meshgrid(*[np.arange(LEAST, MOST + 1)] * 3), -1).reshape(-1, 3)
worst, wages = waiting(every).max(axis=1), every @ WAGE
keeps = (worst <= 3.0) & (abs(np.diff(every)).max(axis=1) <= 3)
print("least wages of all plans that keep the limits:", wages[keeps].min())

# %%
figure, axis = plt.subplots(figsize=(7.0, 3.2))
shown = worst < 60
best = [worst[shown & (wages == wage)].min() for wage in np.unique(wages[shown])]
axis.semilogy(
    np.unique(wages[shown]), best, ".", color="#9aa5b1", label="best plan for its wages, all 216 tried"
)
axis.axhline(3.0, color="#c2543b", linewidth=1)
axis.plot(result.objective, result.x[3:].max(), "o", color="#0f8b8d", label="what was found")
axis.set(xlabel="wages", ylabel="minutes in the worst shift")
axis.legend()
plt.show()

# %% [markdown]
# Left of the teal dot every plan exceeds the red line. **Optimality is proved**, and trying every plan
# confirms it, which is possible with three shifts. dovetail evaluates the simulator in batches for all
# combinations of inputs, and a MIP chooses among the answers. With more than 5,000 combinations, or a slow
# simulator with more than 256, it would search instead and return `feasible`.

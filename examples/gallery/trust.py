# %% [markdown]
# # Promised and true: can the prediction be trusted?
#
# A shop sells five products and sets their prices by a network that was trained on 500 days. On all of these
# days the prices moved together: a season with high prices, a season with low ones. What does the network
# know about a day on which one price is high and another one low? Nothing, and it answers all the same.
#
# In this example the truth is known, because the customers are simulated. The network sees their noisy
# revenue of the past only.

# %% [setup]
import matplotlib.pyplot as plt
import numpy as np
from sklearn.mixture import GaussianMixture
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import dovetail as dt

# %%
TIME_LIMIT = 7.0
rng = np.random.default_rng(0)


def revenue(prices: np.ndarray) -> np.ndarray:
    """(n, 5) prices to the revenue of a day, in thousands: each customer takes one product or none."""
    wish = np.exp(np.array([3.0, 3.2, 3.4, 3.6, 3.8]) - 0.4 * prices)
    return 0.1 * np.sum(prices * wish, axis=1) / (1.0 + wish.sum(axis=1))


season = rng.uniform(8.0, 15.0, (500, 1))
seen = season + 0.4 * np.arange(5) + rng.normal(0.0, 0.6, (500, 5))
noisy = revenue(seen) + rng.normal(0.0, 0.025, 500)


def trained(days: np.ndarray, seed: int) -> Pipeline:
    """A network that has seen the revenue of these days."""
    net = MLPRegressor(hidden_layer_sizes=(12, 12), alpha=1e-3, max_iter=800, random_state=seed)
    return make_pipeline(StandardScaler(), net).fit(seen[days], noisy[days])


network = trained(np.arange(500), 0)
refits = [trained(rng.integers(0, 500, 500), seed) for seed in range(1, 6)]  # each on other days
density = GaussianMixture(3, random_state=0).fit(seen)

# %% [markdown]
# The same problem six times: prices from 1 to 25, as much revenue as possible. `within=` says where the
# network is trusted, `risk=` takes five networks and subtracts two of their spreads. *Promised* is what the
# objective says, *kept* what these five networks say which were trained again on other days, and *true* what
# customers do.

# %%
cautious = dt.MeanSpread(2.0, bad="low")
ways = {
    "plain": {},
    "box": {"within": "box"},
    "hull": {"within": "hull"},
    "density": {"within": dt.Score(density)},
    "5 networks, less 2 spreads": {"risk": cautious},
    "both, 5 networks in the hull": {"risk": cautious, "within": "hull"},
}
found = {}
names = [f"price[{product}]" for product in "ABCDE"]
best_day = dict(zip(names, seen[np.argmax(noisy)], strict=True))  # where every search begins
for way, options in ways.items():
    lower, upper = [1.0] * 5 + [-99.0], [25.0] * 5 + [99.0]
    mip = dt.Mip([0.0] * 5 + [1.0], lower=lower, upper=upper, sense="max", names=[*names, "revenue"])
    problem = dt.Problem(mip)
    predictor = refits if "risk" in options else network
    problem.add_predictor(predictor, names, ["revenue"], data=seen, name="net", **options)
    result = dt.solve(problem, time_limit=TIME_LIMIT, start=best_day, log=False)
    assert dt.check(problem, result.x).within()
    prices = result.x[None, :5]
    kept = [float(one.predict(prices)[0]) for one in refits]
    found[way] = result.objective, np.mean(kept), revenue(prices)[0]
    outside = len(result.extrapolations)
    print(f"{way:29}{prices[0].round(1)!s:28} promised {result.objective:5.2f}, kept {np.mean(kept):5.2f}, "
          f"true {found[way][2]:5.2f}; {outside} prices outside the data, {result.status}")  # fmt: skip
print(f"best day of the 500: {revenue(seen).max():.2f}, a mean day: {revenue(seen).mean():.2f}")

# %%
figure, axis = plt.subplots(figsize=(7.0, 3.4))
place = np.arange(len(found))
colours = {"promised": "#d5dae0", "kept": "#8fa3b5", "true": "#0f8b8d"}
for k, (what, colour) in enumerate(colours.items()):
    axis.bar(place + 0.27 * (k - 1), [values[k] for values in found.values()], 0.25, color=colour, label=what)
axis.axhline(revenue(seen).max(), color="#c2543b", linewidth=1, label="best day so far")
axis.set_xticks(place, [way.replace(", ", ",\n") for way in found], fontsize=8)
axis.set_ylabel("revenue of a day, thousands")
axis.legend(fontsize=8)
plt.show()

# %% [markdown]
# The plain decision promises three times the best day and loses most of the revenue, although the check is
# right: it *is* what the network says. Networks that were trained again on other days agree with it: they
# have seen no other customers either. The box contains every combination of high and low prices, and helps
# little where prices moved together. Within the **hull** or a **density** decisions are as good as the best
# days, and the promise is a fifth too high. `risk=` alone does not help here, because ReLU networks continue
# beyond the data as straight lines and agree; within the hull it makes the promise nearly right.
#
# No domain is free: what is better than the past and outside of it cannot be found. Here nothing is;
# [fifteen such comparisons](../benchmarks/trust.md) have one in which domains give nearly half away.

# %% [markdown]
# # Counterfactual: what would have to change?
#
# A bank's classifier (scikit-learn) has declined an application. What is the smallest change that reverses
# the decision? Age cannot change, the number of open accounts is an integer, and only a few features should
# change. The data is made up.

# %% [setup]
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dovetail as dt

TIME_LIMIT = 10.0

rng = np.random.default_rng(3)
people = pd.DataFrame(
    {
        "age": rng.integers(20, 70, 1500),
        "income": rng.lognormal(3.6, 0.4, 1500).round(1),  # thousands a year
        "debt": rng.gamma(2.0, 9.0, 1500).round(1),
        "savings": rng.gamma(1.5, 8.0, 1500).round(1),
        "accounts": rng.integers(1, 9, 1500),
    }
)
merit = 0.05 * people.income - 0.09 * people.debt + 0.06 * people.savings - 0.35 * abs(people.accounts - 3)
repaid = (merit + 0.01 * people.age + rng.logistic(0.0, 0.5, 1500) > 1.3).astype(int)

# %%
bank = make_pipeline(
    StandardScaler(), MLPClassifier(hidden_layer_sizes=(12,), max_iter=300, tol=1e-3, random_state=0)
).fit(people, repaid)
chances = bank.predict_proba(people)[:, 1]
person = people[(chances > 0.01) & (chances < 0.05) & (people.accounts > 4)].iloc[0]
print(person.to_dict(), "chance", bank.predict_proba(person.to_frame().T)[0, 1].round(3))

# %% [markdown]
# The variables are the new values, the change up and down of each feature, and whether a feature changes at
# all. The predictor is the bank's pipeline with its scaler. Its output is the probability of repayment,
# with a lower bound of one half. The cost is the change in standard deviations; what exceeds half a standard
# deviation costs three times as much.

# %%
FEATURES = list(people.columns)
FREE = FEATURES[1:]
SPREAD = people[FREE].std().to_numpy()


def least_change(touched: int) -> dt.Result:
    """The cheapest way to a yes that touches at most so many features."""
    k = len(FREE)
    low, high = people[FREE].min().to_numpy(), people[FREE].max().to_numpy()
    now = person[FREE].to_numpy()
    eye, none, rest = np.eye(k), np.zeros((k, k)), np.zeros((k, 2))
    names = [f"{kind}[{name}]" for kind in ("new", "up", "down", "far", "touch") for name in FREE]
    mip = dt.Mip(
        cost=np.concatenate([np.zeros(k), 1 / SPREAD, 1 / SPREAD, 2 / SPREAD, np.full(k, 1e-3), [0.0, 0.0]]),
        A=np.block(
            [
                [eye, -eye, eye, none, none, rest],  # new = now + up - down
                [none, eye, eye, -eye, none, rest],  # up + down - far <= half a standard deviation
                [none, eye, eye, none, -np.diag(high - low), rest],  # only what is touched moves
                [np.zeros((1, 4 * k)), np.ones((1, k)), np.zeros((1, 2))],
            ]
        ),
        row_lower=np.concatenate([now, np.full(2 * k + 1, -np.inf)]),
        row_upper=np.concatenate([now, SPREAD / 2, np.zeros(k), [touched]]),
        lower=np.concatenate([low, np.zeros(4 * k), [person.age, 0.5]]),
        upper=np.concatenate([high, high - low, high - low, high - low, np.ones(k), [person.age, 1.0]]),
        integer=[*(name == "accounts" for name in FREE), *[False] * (3 * k), *[True] * k, False, False],
        names=[*names, "age", "chance"],
    )
    problem = dt.Problem(mip)
    problem.add_predictor(bank, ["age", *names[:k]], ["chance"])
    return dt.solve(problem, time_limit=TIME_LIMIT, log=False)


answers = {touched: least_change(touched) for touched in (1, 2, 3)}

# %% [setup]
for touched, answer in answers.items():
    if answer.x is None:
        print(f"touch {touched}: {answer.status}")
        continue
    new = answer.value([f"new[{name}]" for name in FREE])
    asked = pd.DataFrame([[person.age, *new]], columns=FEATURES)
    moved = {name: value for name, value in zip(FREE, new, strict=True) if abs(value - person[name]) > 1e-6}
    changed = ", ".join(f"{name} {person[name]} to {value:.1f}" for name, value in moved.items())
    chance = bank.predict_proba(asked)[0, 1]
    print(f"touch {touched}: {answer.status}, cost {answer.objective:.2f}, chance {chance:.3f}: {changed}")

# %%
figure, axis = plt.subplots(figsize=(7.5, 2.8))
for row, (touched, answer) in enumerate(answers.items()):
    if answer.x is not None:
        moves = (answer.value([f"new[{name}]" for name in FREE]) - person[FREE].to_numpy()) / SPREAD
        colour = ["#c2543b", "#e29a4b", "#0f8b8d"][row]
        axis.bar(
            np.arange(len(FREE)) + 0.25 * (row - 1), moves, 0.25, color=colour, label=f"at most {touched}"
        )
axis.axhline(0.0, color="#9aa5b1", linewidth=1)
axis.set_xticks(range(len(FREE)), FREE)
axis.set_ylabel("change, standard deviations")
axis.legend(title="features touched", loc="center left", bbox_to_anchor=(1.0, 0.5))
plt.show()

# %% [markdown]
# Three answers: the fewer features may change, the further they must go. The probability is that of the
# bank's own pipeline. Where the status is `optimal`, **no smaller change exists** for this classifier
# within the range of its training data. A local search cannot show this.

# %% [markdown]
# # An adversarial example, or a proof that there is none
#
# A classifier recognises ten digits in images of 8 by 8 pixels (made up here). The pixels may change by a
# limited amount in total. Which change moves the image furthest towards another class? The model has one
# network, 64 inputs and one constraint. If the best margin is above 0, the image is classified as another
# digit. If the **bound** is below 0, no change of this size can do so: robustness is proved.

# %% [setup]
import matplotlib.pyplot as plt
import numpy as np

import dovetail as dt
from dovetail.problems import adversarial

# %%
TIME_LIMIT = 8.0
first = adversarial.adversarial("2x24", budget=1.0, seed=42, epochs=25)
print(first.training)
print(f"the image is a {first.label}; the target is {first.target}, which comes second")

# %%
budgets, results = [0.1, 0.2, 0.4, 0.6, 0.8, 1.2, 1.6], []
for budget in budgets:
    trial = adversarial.formulate(
        first.image, first.network, first.training, first.label, first.target, budget
    )
    results.append(dt.solve(trial.problem, time_limit=TIME_LIMIT, log=False))
    answer = results[-1]
    print(f"change {budget}: margin {answer.objective:7.4f}, bound {answer.bound:7.4f}, {answer.status}")

# %%
figure, axis = plt.subplots(figsize=(6.4, 2.9))
axis.axhline(0.0, color="#c2543b", linewidth=1)
axis.plot(budgets, [answer.bound for answer in results], "v-", color="#0f8b8d", label="proved bound")
axis.plot(budgets, [answer.objective for answer in results], "o", color="#e29a4b", label="best image found")
axis.set(xlabel="change allowed, sum over pixels", ylabel="logit of target - true")
axis.legend()
plt.show()

# %% [markdown]
# Where the status is `optimal`, the solution lies on its bound: no image is worse. Left of the point where
# the line crosses 0 the classifier is proved safe against the target; right of it an image fools the
# classifier.

# %%
fooled = next((k for k, answer in enumerate(results) if answer.objective > 0), len(results) - 1)
changed = results[fooled].value(first.pixels)
figure, axes = plt.subplots(1, 3, figsize=(7.0, 2.5))
pictures = (first.image, changed, changed - first.image)
titles = (
    f"a {first.label}",
    f"taken for {first.target}" if results[fooled].objective > 0 else "changed",
    "the change",
)
for axis, picture, title in zip(axes, pictures, titles, strict=True):
    lowest = -1.0 if title == "the change" else 0.0
    axis.imshow(np.reshape(picture, (8, 8)), cmap="RdBu_r" if lowest else "gray", vmin=lowest, vmax=1.0)
    axis.set(title=title, xticks=[], yticks=[])
plt.show()

# %% [markdown]
# The image, the result of the smallest budget in the list that fools the network, and the difference (red:
# brighter, blue: darker).

"""Small random problems with tree ensembles, and their optimum by enumeration of all cells."""

import itertools

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

import dovetail as dt

KINDS = (
    "forest",
    "boosting",
    "tree",
    "xgboost",
    "lightgbm",
    "forest class",
    "xgboost class",
    "three classes",
)


def trained(kind, rng, features):
    """A tiny model, and the target it was trained on."""
    import lightgbm
    import xgboost
    from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
    from sklearn.tree import DecisionTreeRegressor

    X = np.round(2.0 * rng.normal(size=(60, features)), 1)
    y = np.round(X @ rng.normal(size=features) + np.sin(3.0 * X[:, 0]), 2)
    two, three = (y > np.median(y)).astype(int), np.digitize(y, np.quantile(y, [0.33, 0.66]))
    few = {"n_estimators": 2, "max_depth": 2, "random_state": 0}
    one = {"n_jobs": 1, **few}
    model, target = {
        "forest": lambda: (RandomForestRegressor(**few), y),
        "boosting": lambda: (GradientBoostingRegressor(**few), y),
        "tree": lambda: (DecisionTreeRegressor(max_depth=2, random_state=0), y),
        "xgboost": lambda: (xgboost.XGBRegressor(**one), y),
        "lightgbm": lambda: (lightgbm.LGBMRegressor(verbose=-1, min_child_samples=5, **one), y),
        "forest class": lambda: (RandomForestClassifier(**few), two),
        "xgboost class": lambda: (xgboost.XGBClassifier(**one), two),
        "three classes": lambda: (xgboost.XGBClassifier(**one), three),
    }[kind]()
    return model.fit(X, target), y


def random_problem(seed):
    """One or two samples of one to three inputs, integers here and there, up to three rows, either sense."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    features = int(rng.integers(1, 4))
    samples = int(rng.integers(1, 3)) if features < 3 else 1
    model, y = trained(kind, rng, features)
    classifies, outputs = "class" in kind, 3 if kind == "three classes" else 1
    inputs = np.arange(samples * features).reshape(samples, features)
    out = inputs.size + np.arange(samples * outputs).reshape(samples, outputs)
    columns, rows = out.max() + 1 + int(rng.integers(0, 3)), int(rng.integers(0, 4))
    if samples == 2 and rng.random() < 0.3:
        inputs[1, 0] = inputs[0, 0]  # read by both
    lower, upper = np.full(columns, -3.0), np.full(columns, 3.0)
    lower[out], upper[out] = -np.inf, np.inf
    if rng.random() < 0.4:
        lower[out[0, 0]] = 1.0 if classifies else np.quantile(y, 0.6)
    integer = rng.random(columns) < 0.3
    integer[out] = False
    cost = np.round(rng.normal(size=columns), 2)
    cost[out] *= 2.0
    mip = dt.Mip(
        cost,
        np.round(rng.normal(size=(rows, columns)) * (rng.random((rows, columns)) < 0.7), 1),
        np.where(rng.random(rows) < 0.3, -3.0, -np.inf),
        rng.uniform(1.0, 4.0, rows),
        lower,
        upper,
        integer,
        sense=str(rng.choice(["min", "max"])),
    )
    problem = dt.Problem(mip)
    kind_of_output = "classification" if classifies else "regression"
    problem.add_predictor(model, inputs, out, output_type=kind_of_output)
    return problem


def enumerated(problem):
    """The best objective over all cells, closed, each with what the live predictor says in it; or None."""
    mip, best = problem.mip.minimised(), np.inf
    for chosen in itertools.product(*cells(problem)):
        x, lower, upper = np.zeros(mip.n_columns), mip.lower.copy(), mip.upper.copy()
        for j, (low, high) in zip(problem.inputs, chosen, strict=True):
            lower[j], upper[j], x[j] = low, high, high
        out = problem.outputs
        y = problem.predict(x)[out]
        if np.any(y < mip.lower[out] - 1e-9) or np.any(y > mip.upper[out] + 1e-9):
            continue
        lower[out] = upper[out] = y
        rows = LinearConstraint(mip.A, mip.row_lower, mip.row_upper) if mip.n_rows else ()
        found = milp(mip.cost, constraints=rows, bounds=Bounds(lower, upper), integrality=mip.integer)
        if found.status == 0:
            best = min(best, found.fun + mip.offset)
    return problem.mip.sign * best if np.isfinite(best) else None


def cells(problem):
    """For each input its cells as (low, high), by the thresholds of the trees alone."""
    mip, (block,) = problem.mip, problem.blocks
    ensemble = block.description.trees()
    for j in problem.inputs:
        found = [ensemble.cuts[f] for i, f in np.argwhere(block.inputs == j)]
        cuts = np.unique(np.concatenate(found))
        cuts = cuts[(cuts >= mip.lower[j]) & (cuts < mip.upper[j])]
        ends = zip([mip.lower[j], *cuts], [*cuts, mip.upper[j]], strict=True)
        if mip.integer[j]:
            ends = [(np.floor(low) + (k > 0), np.floor(high)) for k, (low, high) in enumerate(ends)]
        yield [(low, high) for low, high in ends if low <= high]

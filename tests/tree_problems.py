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
    problem = _with_random_rows(rng, cost, rows, 1.0, lower, upper, integer)
    kind_of_output = "classification" if classifies else "regression"
    problem.add_predictor(model, inputs, out, output_type=kind_of_output)
    return problem


def enumerated(problem):
    """The best objective over all cells, closed, each with what the live predictor says in it; or None."""
    mip, best = problem.mip.minimised(), np.inf
    for chosen in itertools.product(*cells(problem)):
        x, lower, upper = np.zeros(mip.n_columns), mip.lower.copy(), mip.upper.copy()
        for j, (low, high) in zip(free_inputs(problem), chosen, strict=True):
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
    """For each input that no tree gives its cells as (low, high), by the thresholds of the trees alone."""
    mip, ensembles = problem.mip, [block.description.trees() for block in problem.blocks]
    for j in free_inputs(problem):
        found = [
            ensemble.cuts[f]
            for block, ensemble in zip(problem.blocks, ensembles, strict=True)
            for _, f in np.argwhere(block.inputs == j)
        ]
        cuts = np.unique(np.concatenate(found))
        cuts = cuts[(cuts >= mip.lower[j]) & (cuts < mip.upper[j])]
        ends = zip([mip.lower[j], *cuts], [*cuts, mip.upper[j]], strict=True)
        if mip.integer[j]:
            ends = [(np.floor(low) + (k > 0), np.floor(high)) for k, (low, high) in enumerate(ends)]
        yield [(low, high) for low, high in ends if low <= high]


def free_inputs(problem):
    """Those that no tree gives."""
    return np.setdiff1d(problem.inputs, problem.outputs)


def several_ensembles(seed):
    """Two or three ensembles of all kinds on shared inputs, some of them integer: classes, probabilities and
    numbers; sometimes one reads what another gives; bounds that are thresholds, inputs held at one."""
    rng = np.random.default_rng(10_000 + seed)
    features, blocks = int(rng.integers(1, 3)), int(rng.integers(2, 4))
    models = [_small_model(rng, features) for _ in range(blocks)]
    out = features + np.arange(blocks)
    columns, rows = features + blocks + 1, int(rng.integers(0, 4))
    lower, upper, integer = np.full(columns, -2.0), np.full(columns, 2.0), rng.random(columns) < 0.3
    lower[out], upper[out], integer[out] = -np.inf, np.inf, False
    chained = blocks > 1 and rng.random() < 0.3
    inputs = [np.arange(features) for _ in range(blocks)]
    if chained:
        inputs[1] = np.append(np.arange(1, features), out[0])
    _put_on_thresholds(rng, models, lower, upper, integer, features)
    cost = np.round(rng.normal(size=columns), 2)
    problem = _with_random_rows(rng, cost, rows, 0.5, lower, upper, integer)
    for (model, kind), read, gives in zip(models, inputs, out, strict=True):
        problem.add_predictor(model, read, [gives], output_type=kind)
    return problem


def _with_random_rows(rng, cost, rows, least, lower, upper, integer):
    """Columns with random rows whose upper sides are at `least` or above, of a random sense."""
    shape = rows, cost.size
    mip = dt.Mip(
        cost,
        np.round(rng.normal(size=shape) * (rng.random(shape) < 0.7), 1),
        np.where(rng.random(rows) < 0.3, -3.0, -np.inf),
        rng.uniform(least, 4.0, rows),
        lower,
        upper,
        integer,
        sense=str(rng.choice(["min", "max"])),
    )
    return dt.Problem(mip)


def _small_model(rng, features):
    """Trained, and what its output is taken for."""
    import xgboost
    from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor, RandomForestClassifier
    from sklearn.tree import DecisionTreeRegressor

    X = np.round(rng.uniform(-2.0, 2.0, size=(60, features)), int(rng.integers(0, 3)))
    y = np.round(X @ rng.normal(size=features) + np.sin(3.0 * X[:, 0]), 2)
    two = (y > np.median(y)).astype(int)
    few = {"n_estimators": 2, "max_depth": 2, "random_state": 0}
    model, target, kind = [
        (DecisionTreeRegressor(max_depth=3, random_state=0), y, "regression"),
        (GradientBoostingRegressor(**few), y, "regression"),
        (xgboost.XGBRegressor(n_jobs=1, **few), y, "regression"),
        (xgboost.XGBClassifier(n_jobs=1, **few), two, "regression"),
        (GradientBoostingClassifier(**few), two, "regression"),
        (RandomForestClassifier(**few), two, "classification"),
    ][int(rng.integers(6))]
    return model.fit(X, target), kind


def _put_on_thresholds(rng, models, lower, upper, integer, features):
    """Bounds of some inputs are thresholds of the trees, on either side or on both."""
    for j in range(features):
        probe = dt.Problem(dt.Mip(np.zeros(features + 1), lower=-9.0, upper=9.0))
        block = probe.add_predictor(models[0][0], np.arange(features), [features], output_type=models[0][1])
        cuts = block.description.trees().cuts[j]
        cuts = cuts[np.abs(cuts) < 2.0]
        if integer[j] or not cuts.size or rng.random() < 0.5:
            continue
        cut, side = float(rng.choice(cuts)), int(rng.integers(3))
        lower[j] = cut if side != 1 else lower[j]
        upper[j] = cut if side != 0 else upper[j]

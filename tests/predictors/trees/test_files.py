"""Trees in files: what their library says of them, without it; damaged ones end in errors of ours."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.core.errors import DovetailError
from dovetail.core.predictor import as_predictor
from tests.predictors.trees import models


def saved(folder, library, name, suffix):
    model = models.model(library, name)
    path = folder / f"model{suffix}"
    (model if library == "xgboost" else model.booster_).save_model(path)
    return model, path


@pytest.mark.parametrize(
    ("library", "name", "suffix"),
    [
        ("xgboost", "XGBRegressor", ".json"),
        ("xgboost", "XGB dart", ".ubj"),
        ("xgboost", "XGB three", ".ubj"),
        ("xgboost", "XGBClassifier", ".json"),
        ("lightgbm", "LGBMRegressor", ".txt"),
        ("lightgbm", "LGBM rf", ".txt"),
        ("lightgbm", "LGBMClassifier", ".txt"),
    ],
)
def test_a_file_says_what_its_library_says(library, name, suffix, tmp_path):
    model, path = saved(tmp_path, library, name, suffix)
    predictor = dt.load_predictor(path)
    X = np.random.default_rng(0).normal(size=(500, models.FEATURES))
    live = model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)[:, None]
    truth = np.asarray(live, dtype=np.float64)[:, -predictor.trees().outputs :]
    assert np.max(np.abs(predictor.predict(X) - truth)) <= (1e-14 if library == "lightgbm" else 1e-6)
    if name == "XGBRegressor" and as_predictor(model).trees().in_order:
        assert np.array_equal(predictor.predict(X), truth)


def test_a_model_stopped_early_says_which_is_meant(tmp_path):
    import xgboost as x

    X, y = models.data()
    y = np.random.default_rng(0).permutation(y)  # nothing to learn
    model = x.XGBRegressor(n_estimators=30, early_stopping_rounds=2, learning_rate=0.9, n_jobs=1)
    model.fit(X[:80], y[:80], eval_set=[(X[80:], y[80:])], verbose=False)
    model.save_model(tmp_path / "model.json")
    with pytest.raises(DovetailError, match="stopped early"):
        dt.load_predictor(tmp_path / "model.json")
    model.get_booster()[: model.best_iteration + 1].save_model(tmp_path / "kept.ubj")
    kept = dt.load_predictor(tmp_path / "kept.ubj")
    assert np.allclose(kept.predict(X)[:, 0], model.predict(X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("library", "name", "suffix"),
    [
        ("xgboost", "XGBRegressor", ".ubj"),
        ("xgboost", "XGBRegressor", ".json"),
        ("lightgbm", "LGBMRegressor", ".txt"),
    ],
)
def test_damaged_files_end_in_our_errors(library, name, suffix, tmp_path):
    content = saved(tmp_path, library, name, suffix)[1].read_bytes()
    rng, path, read = np.random.default_rng(0), tmp_path / f"bad{suffix}", 0
    for k in range(60):
        bad = bytearray(content[: rng.integers(len(content))] if k % 3 == 0 else content)
        for place in rng.integers(len(bad), size=4) if bad else ():
            bad[place] = rng.integers(256) if k % 2 else rng.integers(32, 127)
        path.write_bytes(bytes(bad))
        try:
            dt.load_predictor(path).trees()
            read += 1
        except DovetailError:
            pass
    assert read < 60


def test_a_file_larger_than_its_limit_is_not_read(tmp_path):
    _, path = saved(tmp_path, "xgboost", "XGBRegressor", ".json")
    with pytest.raises(DovetailError, match="the limit is 100 bytes"):
        dt.load_predictor(path, limits=dt.FileLimits(bytes=100))
    (tmp_path / "other.json").write_text("[1, 2]")
    with pytest.raises(DovetailError, match="no model of XGBoost's"):
        dt.load_predictor(tmp_path / "other.json")
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(DovetailError, match="no model of LightGBM's"):
        dt.load_predictor(tmp_path / "notes.txt")

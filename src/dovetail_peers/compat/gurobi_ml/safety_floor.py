"""`safety_floor`: splits of trees that are nearer to 0 than that, moved away from it.

gurobi-machinelearning has it for thresholds that are smaller than the tolerances of its solver. dovetail has
no need of it, but who asks for it gets it: what is solved and verified is the tree so moved.
"""

from __future__ import annotations

import json
import re
from copy import deepcopy
from typing import Any

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import OptionError

_THRESHOLDS = re.compile(r"^threshold=(.*)$", re.MULTILINE)
"""Of one tree in LightGBM's text."""


def with_safety_floor(predictor: Any, floor: float) -> Any:
    """The predictor itself where the floor moves nothing; else a copy with its splits moved."""
    if not floor >= 0.0:
        raise OptionError(f"safety_floor is {floor}; give a number >= 0.")
    if floor == 0.0:
        return predictor
    library, name = type(predictor).__module__.split(".")[0], type(predictor).__name__
    if name == "Pipeline":
        copy = deepcopy(predictor)
        copy.steps[-1] = (copy.steps[-1][0], with_safety_floor(copy.steps[-1][1], floor))
        return copy
    if library == "sklearn" and (hasattr(predictor, "tree_") or hasattr(predictor, "estimators_")):
        return _scikit_learn(predictor, floor)
    if library == "lightgbm":
        return _lightgbm(getattr(predictor, "booster_", predictor), floor)
    if library == "xgboost":
        return _xgboost(predictor, floor)
    raise OptionError(f"safety_floor moves the splits of trees, and {name} has none that can be moved.")


def moved(thresholds: FloatArray, floor: float) -> FloatArray:
    """Those between -floor and floor put there; 0 itself stays.

    >>> moved(np.array([-0.5, -0.001, 0.0, 0.002]), 0.01).tolist()
    [-0.5, -0.01, 0.0, 0.01]
    """
    return np.where(np.abs(thresholds) < floor, np.sign(thresholds) * floor, thresholds)


def _scikit_learn(predictor: Any, floor: float) -> Any:
    copy = deepcopy(predictor)
    for one in np.ravel(np.asarray(getattr(copy, "estimators_", [copy]), dtype=object)):
        inner = one.tree_.children_left >= 0
        one.tree_.threshold[inner] = moved(one.tree_.threshold[inner], floor)
    return copy


def _lightgbm(booster: Any, floor: float) -> Any:
    def put(line: re.Match[str]) -> str:
        thresholds = np.array(line[1].split(), dtype=np.float64)
        return "threshold=" + " ".join(repr(float(value)) for value in moved(thresholds, floor))

    return type(booster)(model_str=_THRESHOLDS.sub(put, booster.model_to_string()))


def _xgboost(predictor: Any, floor: float) -> Any:
    copy = deepcopy(predictor)
    booster = copy.get_booster() if hasattr(copy, "get_booster") else copy
    document = json.loads(booster.save_raw(raw_format="json"))
    for tree in document["learner"]["gradient_booster"]["model"]["trees"]:
        inner = np.array(tree["left_children"]) >= 0
        thresholds = np.array(tree["split_conditions"], dtype=np.float64)
        thresholds[inner] = moved(thresholds[inner], floor)
        tree["split_conditions"] = thresholds.tolist()
    booster.load_model(bytearray(json.dumps(document), "utf-8"))
    return copy

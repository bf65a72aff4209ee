"""The steps of a scikit-learn estimator, the method that gives its answer, and whether its code is
unmodified."""

from __future__ import annotations

from collections.abc import Iterator
from types import FunctionType
from typing import Any, Literal

import numpy as np

from dovetail.core.errors import PredictorError

Answer = Literal["predict", "predict_proba", "decision_function", "transform", "nearness", "classes"]
"""The method of an estimator that gives its answer. Two methods are dovetail's: scores of centres, the
largest of which belongs to the nearest centre (`answer.py`), and the one-hot of the class of `predict`."""

WITH_PROBABILITIES = (
    "LogisticRegression",
    "MLPClassifier",
    "OneVsRestClassifier",
    "LinearDiscriminantAnalysis",
    "QuadraticDiscriminantAnalysis",
    "MultiOutputClassifier",
    "BaggingClassifier",
    "ForestClassifier",
    "DecisionTreeClassifier",
    "BaseGradientBoosting",
    "HistGradientBoostingClassifier",
    "BaseWeightBoosting",
)
"""Classifiers whose answer is their probabilities."""
CENTRES = ("KMeans", "MiniBatchKMeans", "NearestCentroid")
"""Estimators that find the nearest of some centres."""


def own_classes(estimator: Any) -> Iterator[str]:
    """Names of the scikit-learn classes of an estimator, most derived first."""
    return (cls.__name__ for cls in type(estimator).__mro__ if cls.__module__.startswith("sklearn."))


def is_a(estimator: Any, *names: str) -> bool:
    """Whether an estimator is an instance of one of these scikit-learn classes."""
    return any(name in names for name in own_classes(estimator))


def steps_of(estimator: Any) -> list[Any]:
    """The steps of a pipeline that compute something, nested pipelines expanded; otherwise the estimator
    itself."""
    if not is_a(estimator, "Pipeline"):
        return [estimator]
    inner = [step for _, step in estimator.steps if step is not None and not isinstance(step, str)]
    return [step for pipeline in inner for step in steps_of(pipeline)]


def last_step(estimator: Any) -> Any:
    """The last step of a pipeline, which gives the answer."""
    return (steps_of(estimator) or [estimator])[-1]


def answering_method(estimator: Any) -> Answer:
    """The method that gives the estimator's answer."""
    last = last_step(estimator)
    if is_a(last, *CENTRES):
        return "nearness"
    if is_a(last, "StackingClassifier"):
        return answering_method(last.final_estimator_) if hasattr(last, "final_estimator_") else "predict"
    if _counts_votes(last):
        return "classes"
    if hasattr(last, "classes_") or is_a(last, "ClassifierMixin"):
        return "predict_proba" if has_probabilities(last) else "decision_function"
    if is_a(last, "OneClassSVM"):
        return "decision_function"
    return "predict" if hasattr(last, "predict") else "transform"


def has_probabilities(last: Any) -> bool:
    """Whether a classifier's answer is its probabilities."""
    if is_a(last, "SGDClassifier"):
        return bool(last.loss == "log_loss")
    if not type(last).__module__.startswith("sklearn."):
        return hasattr(last, "predict_proba")  # of another library, or of the user's own
    soft = is_a(last, "VotingClassifier") and last.voting == "soft"
    return soft or is_a(last, *WITH_PROBABILITIES)


def breaks_ties(machine: Any) -> bool:
    """Whether the largest decision value of a support vector machine decides its predict."""
    return bool(machine.break_ties) and machine.decision_function_shape == "ovr"


def _counts_votes(last: Any) -> bool:
    """Whether classes are counted as votes, without a number that decides ties."""
    if is_a(last, "BaseSVC"):
        return len(getattr(last, "classes_", ())) > 2 and not breaks_ties(last)
    return is_a(last, "VotingClassifier") and last.voting == "hard"


def is_classifier(estimator: Any) -> bool:
    """Whether it was trained as a classifier."""
    last = last_step(estimator)
    return hasattr(last, "classes_") or is_a(last, *CENTRES)


def is_multilabel(estimator: Any) -> bool:
    """Whether each output is a class of its own."""
    last = last_step(estimator)
    binarizer = getattr(last, "_label_binarizer", None) or getattr(last, "label_binarizer_", None)
    labels = str(getattr(binarizer, "y_type_", "")).startswith("multilabel")
    return labels or is_a(last, "MultiOutputClassifier")


def has_binary_probability(estimator: Any) -> bool:
    """Whether its answer belongs to two classes, in one column or two."""
    if answering_method(estimator) not in ("predict_proba", "classes") or is_multilabel(estimator):
        return False
    return is_classifier(estimator) and len(last_step(estimator).classes_) == 2


def features_of(estimator: Any) -> int:
    """Number of features in training."""
    found = _features(estimator)
    if found is None:
        raise PredictorError(
            f"{type(estimator).__name__} does not say how many features it takes; {way_out(estimator)}"
        )
    return found


def _features(estimator: Any) -> int | None:
    """The number of features, or None; an estimator that ignores features does not state it, but its members
    may."""
    for part in [estimator, *steps_of(estimator)]:
        found = getattr(part, "n_features_in_", None)
        if found is not None:
            return int(found)
        members = [*getattr(part, "estimators_", ())] or [getattr(part, "regressor_", None)]
        if members[0] is not None and (inner := _features(members[0])) is not None:
            return inner
    return None


def way_out(estimator: Any) -> str:
    """What to do with an estimator that cannot be written as a network."""
    name = type(estimator).__name__
    return (
        "pass its own predict method as a plain function instead (predictor=estimator.predict, or "
        "lambda X: estimator.predict_proba(X)[:, 1]; gradients are then taken by differences), or teach "
        f"dovetail the class with dovetail.register_predictor({name}, build)."
    )


def changed(estimator: Any) -> str:
    """Why an estimator may compute something else than its scikit-learn class; empty if it does not."""
    return next(filter(None, map(changed_itself, all_parts(estimator))), "")


def learned_arrays(estimator: Any) -> Iterator[np.ndarray[Any, Any]]:
    """All arrays that were learned in training."""
    for part in all_parts(estimator):
        for value in vars(part).values():
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, np.ndarray):
                    yield one


INSIDE = ("transformers_", "transformer_list")
HELD = ("regressor_", "transformer_", "final_estimator_", "estimator_")
"""Attributes that hold other estimators, besides steps and lists: in pairs, and as single objects."""


def all_parts(estimator: Any) -> Iterator[Any]:
    """The estimator and all estimators inside it."""
    yield estimator
    inner = [step for _, step in getattr(estimator, "steps", ())]
    several = getattr(estimator, "estimators_", ())
    inner += [*(several.ravel() if isinstance(several, np.ndarray) else several)]
    inner += [each[1] for name in INSIDE for each in getattr(estimator, name, ())]
    inner += [getattr(estimator, name, None) for name in HELD]
    for part in inner:
        if part is not None and not isinstance(part, str):
            yield from all_parts(part)


def changed_itself(part: Any) -> str:
    """Why the estimator itself, without the estimators inside it, may compute something else; empty if it
    does not."""
    cls = type(part)
    if not cls.__module__.startswith("sklearn."):
        return f"{cls.__name__} is a class of its own"
    replaced = [name for name, value in vars(part).items() if callable(value) and hasattr(cls, name)]
    for base in cls.__mro__:
        if base is not object:
            methods = {name: value for name, value in vars(base).items() if isinstance(value, FunctionType)}
            replaced += [name for name, one in methods.items() if not one.__module__.startswith("sklearn.")]
    return f"{replaced[0]} of {cls.__name__} was replaced" if replaced else ""


def means_logits(estimator: Any) -> bool:
    """Whether the owner of an MLP classifier removed its last activation to get logits."""
    last = last_step(estimator)
    return is_a(last, "MLPClassifier") and getattr(last, "out_activation_", "") == "identity"


def best_estimator(search: Any) -> Any:
    """The estimator refitted with the best options."""
    found = getattr(search, "best_estimator_", None)
    if found is None:
        raise PredictorError(
            f"{type(search).__name__} holds no best estimator; call its fit first, with refit=True."
        )
    return found

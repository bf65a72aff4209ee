"""Keywords that users of PySCIPOpt-ML and gurobi-machinelearning pass, and what they mean here."""

from __future__ import annotations

import logging
from typing import Any, Literal

from dovetail.core.description import Description
from dovetail.core.errors import OptionError, PredictorError
from dovetail.core.problem import OutputType
from dovetail.core.suggestion import did_you_mean
from dovetail.modelling.attachment import Attachment

RELU_FORMULATIONS = ("mip", "smooth", "soft")
"""gurobi-machinelearning's ways to write ReLU out, the last of them a curve near it; ReLU is meant by all."""

FORMULATIONS = ("bigm", "l1", "l2", "leaf", "leafs", "paths", "sos")
"""The peers' ways to write networks, trees and clusters out; all mean the predictor."""

WRITING_OPTIONS = frozenset(
    {"formulation", "bigm", "relu_formulation", "soft_relu_beta", "pwl_attributes", "verbose", "no_record"}
) | {"no_debug", "safety_floor", "float_type"}
"""These say how to write a network out, which dovetail does not."""

PEER_OPTIONS = WRITING_OPTIONS | {"unique_naming_prefix", "predict_function"}

OWN_OPTIONS = frozenset(
    {"input_vars", "output_vars", "output_type", "threshold", "epsilon", "name", "data", "trust"}
)
"""What `add_predictor_constr` itself takes, for those who have misspelled it."""

PREDICT_FUNCTIONS: dict[str, OutputType | None] = {"predict": None, "predict_proba": "regression"}
"""The classes of a classifier (numbers of all others), or its probabilities."""

PeerOutputType = OutputType | Literal["probability_1", "probability"] | None
"""None: what the predictor is; "probability_1": a classifier's probability of its second class;
"probability": those of all its classes, or whatever numbers it gives for them."""

_log = logging.getLogger("dovetail")


def require_known(peer_options: dict[str, Any]) -> None:
    """A `TypeError` for keywords nobody knows, an `OptionError` for a way to write out that is none."""
    for option in peer_options:
        if option not in PEER_OPTIONS:
            meant = did_you_mean(option, OWN_OPTIONS | PEER_OPTIONS)
            raise TypeError(f"add_predictor_constr() got an unexpected keyword argument {option!r}{meant}")
        if option in WRITING_OPTIONS:
            _log.debug("%s= says how to write a network out; dovetail does not write it out", option)
    for option, known in (("relu_formulation", RELU_FORMULATIONS), ("formulation", FORMULATIONS)):
        way = peer_options.get(option)
        if way is not None and way not in known:
            raise OptionError(
                f"{option} must be one of {', '.join(known)}, all of which mean the predictor as it is; it "
                f"is {way!r}."
            )


def naming_prefix(peer_options: dict[str, Any]) -> str:
    """The peers' naming prefix."""
    return str(peer_options.get("unique_naming_prefix", "")).rstrip("_")


def asked_output_type(output_type: PeerOutputType, peer_options: dict[str, Any]) -> PeerOutputType:
    """What the outputs should be, also where it is said by the method of scikit-learn's that gives them."""
    function = peer_options.get("predict_function")
    if function is None or output_type is not None:
        return output_type
    if function not in PREDICT_FUNCTIONS:
        raise PredictorError(
            f"predict_function is {function!r}; dovetail takes 'predict' and 'predict_proba'. For another "
            f"method pass it as the predictor (estimator.{function}), or set out_activation_ of an MLP to "
            '"identity" for its logits.'
        )
    return PREDICT_FUNCTIONS[function]


def output_type_of(description: Description, asked: PeerOutputType) -> OutputType:
    """A classifier gives classes unless it is asked for something else."""
    if asked == "probability_1" or asked == "probability":  # one by one: mypy then knows what is left
        return "regression"
    if asked is None:
        return "classification" if description.is_classifier else "regression"
    return asked


def require_probability(attached: Attachment, asked: PeerOutputType) -> None:
    """Refuse "probability_1" of what has no such probability."""
    assert attached.block is not None
    if asked == "probability_1" and not (
        attached.block.description.ends_in_sigmoid and attached.block.outputs.shape[1] == 1
    ):
        raise PredictorError(
            f"{attached.name}: {attached.block.description.name} has no probability of one class out of two; "
            'output_type "probability_1" needs a classifier of two classes with predict_proba, or a network '
            "that ends in a sigmoid."
        )

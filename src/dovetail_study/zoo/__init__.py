"""A zoo of problems as users might write them, by kind, size and seed.

A kind is a generator. It draws measurements from a law that is plausible for its subject, trains its
predictors on them (networks, or tree ensembles of scikit-learn), and states the decision as its owner would:
his variables, his constraints, his predictors. Nothing is shaped for a solver. Every problem is feasible by
construction, as the docstring of its family explains (that of `studied.py` says what is not guaranteed).
Every variable that a predictor reads has finite bounds (in water, the study's own, they are rows). The same
size and seed give the same problem.

A third of the kinds is held out: they are solved and reported, and nothing in dovetail is ever tuned on them.
They were chosen when the zoo was built and cover all of its features: blocks that share a constraint, a loop,
a class, an LSTM, trees. None of the study's own eight is among them, because dovetail was developed with
those.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from dovetail.core.errors import OptionError
from dovetail.core.problem import Problem
from dovetail.core.words import did_you_mean
from dovetail_study.zoo import (
    chain,
    control,
    doses,
    ensemble,
    facilities,
    forecast,
    ladders,
    offers,
    portfolio,
    recourse,
    recycle,
    revenue,
    schedule,
    studied,
)
from dovetail_study.zoo.learners import boosted_classes, boosting, forest


@dataclass(frozen=True)
class Kind:
    """One kind of problem."""

    name: str
    summary: str
    """Its description, one sentence."""
    build: Callable[[int, int], Problem]
    """(size, seed) -> a problem. Size 1 is meant to be proved in a second or two by a good method, size 2 in
    half a minute; size 3 is large."""
    held_out: bool = False
    """Whether it is reported only: nothing is tuned on it."""


_ALL = (
    Kind("water", "Make as many water samples drinkable as budgets allow.", studied.water),
    Kind("tree", "Plant species on a grid so that most trees survive.", studied.tree),
    Kind("wine", "Blend vineyards into wines of the best mean quality.", studied.wine),
    Kind("diet", "Find the cheapest diet that feeds and is palatable.", studied.diet),
    Kind("function", "Minimise one learnt function where another has a given value.", studied.function),
    Kind("adversarial", "Turn an image into another class by little change.", studied.adversarial),
    Kind("heat", "Run a heat pump at whole levels through a day.", studied.heat),
    Kind("dispatch", "Share out jobs so that the least efficient machine does best.", studied.dispatch),
    Kind("ensemble", "Maximise the mean of five networks where they agree.", ensemble.ensemble),
    Kind("ensemble-trees", "Maximise the mean of five forests where they agree.",
         partial(ensemble.ensemble, learner=forest)),
    Kind("recycle", "Run a plant of three networks whose loop a constraint closes.",
         recycle.recycle, held_out=True),
    Kind("chain", "Choose lots for a mix whose strength two further networks read.", chain.chain),
    Kind("chain-trees", "Choose lots for a mix whose strength two further boosted models read.",
         partial(chain.chain, learner=boosting)),
    Kind("control", "Heat a tank by whole stages over a horizon, two networks a step.", control.control),
    Kind("ladders", "Choose one of four prices for every product of every store.", ladders.ladders),
    Kind("ladders-trees", "Choose one of four prices for every product of every store, demand by boosting.",
         partial(ladders.ladders, learner=boosting)),
    Kind("offers", "Choose offers for customers who share one budget.", offers.offers, held_out=True),
    Kind("offers-trees", "Choose offers for customers who share one budget, responses by a forest.",
         partial(offers.offers, learner=forest), held_out=True),
    Kind("doses", "Choose whole doses with the most benefit below a ceiling of toxicity.", doses.doses),
    Kind("doses-trees", "Choose whole doses with the most benefit below a ceiling of toxicity, by boosting.",
         partial(doses.doses, learner=boosting)),
    Kind("revenue", "Maximise prices times the demand that networks expect.", revenue.revenue),
    Kind("revenue-trees", "Maximise prices times the demand that boosted trees expect.",
         partial(revenue.revenue, learner=boosting)),
    Kind("forecast", "Advertise and produce for sales that a convolution forecasts.", forecast.convolution),
    Kind("forecast-lstm", "Advertise and produce for sales that an LSTM forecasts.",
         forecast.lstm, held_out=True),
    Kind("portfolio", "Hold few assets with the most return that a risk network allows.",
         portfolio.portfolio, held_out=True),
    Kind("schedule", "Put jobs on machines with crews that decide how long they take.",
         schedule.schedule, held_out=True),
    Kind("facilities", "Open sites of whole sizes whose cost a network has learnt.",
         facilities.facilities, held_out=True),
    Kind("facilities-trees", "Open sites of whole sizes whose cost a forest has learnt.",
         partial(facilities.facilities, learner=forest), held_out=True),
    Kind("recourse", "Change a refused application least, so that a network approves it.",
         recourse.recourse, held_out=True),
    Kind("recourse-trees", "Change a refused application least, so that boosted trees approve it.",
         partial(recourse.recourse, learner=boosted_classes, sure=0.55), held_out=True),
)  # fmt: skip

KINDS: dict[str, Kind] = {kind.name: kind for kind in _ALL}
"""All kinds by name, in the order in which they are reported."""


def build(name: str, size: int, seed: int) -> Problem:
    """The problem of that kind, size (1, 2 or 3) and seed."""
    if name not in KINDS:
        meant = did_you_mean(name, KINDS) or "."
        raise OptionError(f"kind {name!r} is not known; choose {', '.join(KINDS)}{meant}")
    return KINDS[name].build(size, seed)

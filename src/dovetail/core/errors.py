"""Errors a user can meet, each also an instance of the built-in it resembles.

Every message names the item at fault and says what to do about it. Infeasible
and unbounded problems are statuses of a result, never errors.
"""


class DovetailError(Exception):
    """Base of all errors raised on purpose by dovetail."""


class ModelError(DovetailError, ValueError):
    """The host model is not usable: wrong shape, not finite, crossed bounds, unknown name."""


class PredictorError(DovetailError, ValueError):
    """A predictor cannot be used: wrong shape, not finite, rows that influence each other, a cycle."""


class OptionError(DovetailError, ValueError):
    """An option has a value it cannot have, or a name is not known."""


class UnsupportedError(DovetailError, ValueError):
    """The chosen part cannot take this problem; the message names one that can."""


class EngineError(DovetailError, RuntimeError):
    """A sub-solver failed or contradicted itself. Its answer was not used."""


class MissingDependencyError(DovetailError, ImportError):
    """An optional library is needed; the message says how to install it."""

"""The errors that users may get; each class is also derived from the most similar built-in error.

Every message names the invalid item and the remedy. Infeasible and unbounded problems are statuses
of a result, never errors.
"""


class DovetailError(Exception):
    """Base of all errors raised on purpose by dovetail.

    >>> import dovetail as dt
    >>> try:
    ...     dt.Mip(cost=[1.0], lower=2.0, upper=1.0)
    ... except dt.DovetailError as refusal:
    ...     print(type(refusal).__name__)
    ModelError
    """


class ModelError(DovetailError, ValueError):
    """The model cannot be used: wrong shape, not finite, crossed bounds, unknown name.

    >>> import dovetail as dt
    >>> dt.Mip(cost=[1.0, 1.0], lower=[0.0, 2.0], upper=1.0, names=["a", "b"])
    Traceback (most recent call last):
    dovetail.core.errors.ModelError: the interval of b is [2.0, 1.0]; give lower <= upper, ...
    """


class PredictorError(DovetailError, ValueError):
    """A predictor cannot be used: wrong shape, not finite, samples that influence each other, a cycle.

    >>> import dovetail as dt
    >>> problem = dt.Problem(dt.Mip(cost=[0.0, 1.0]))
    >>> problem.add_predictor("not a network", inputs=[0], outputs=[1])
    Traceback (most recent call last):
    dovetail.core.errors.PredictorError: ...
    """


class OptionError(DovetailError, ValueError):
    """An option has an invalid value, or a name is not known.

    >>> import dovetail as dt
    >>> dt.DualDecomposition(rho=-1.0)
    Traceback (most recent call last):
    dovetail.core.errors.OptionError: DualDecomposition: rho is -1.0; give a finite number > 0.
    """


class UnsupportedError(DovetailError, ValueError):
    """The chosen method or engine cannot take this problem; the message names one that can.

    >>> import dovetail as dt
    >>> problem = dt.Problem(dt.Mip(cost=[1.0, -1.0], upper=9.0, integer=[True, False]))
    >>> block = problem.add_predictor(lambda X: X**2, inputs=[0], outputs=[1])
    >>> dt.solve(problem, dt.DualDecomposition(engine="piqp"), log=False)
    Traceback (most recent call last):
    dovetail.core.errors.UnsupportedError: ...
    """


class EngineError(DovetailError, RuntimeError):
    """A sub-solver failed or contradicted itself; its answer was not used.

    >>> import dovetail as dt
    >>> issubclass(dt.EngineError, RuntimeError)
    True
    """


class MissingDependencyError(DovetailError, ImportError):
    """An optional library is needed; the message says how to install it.

    >>> import dovetail as dt
    >>> issubclass(dt.MissingDependencyError, ImportError)
    True
    """

"""Linear models and networks of one hidden layer written out by hand, for tools that no peer is there for.

Each class has `add_predictor_constr` as dovetail has it: the programs of these tools are run with either.
"""

import numpy as np
import pandas as pd
import xarray as xr

from tests.compat import trained


def layers(predictor):
    """Weights (inputs, outputs) and biases; of a linear model one pair."""
    if hasattr(predictor, "coefs_"):
        return [*zip(predictor.coefs_, predictor.intercepts_, strict=True)]
    return [(predictor.coef_.reshape(-1, 1), np.atleast_1d(predictor.intercept_))]


def reach(n, weights, biases):
    """What a neuron is at least and at most, over all that the features may be."""
    lower, upper = trained.limits(n)
    positive, negative = np.maximum(weights, 0.0), np.minimum(weights, 0.0)
    low, high = lower @ positive + upper @ negative + biases, upper @ positive + lower @ negative + biases
    return np.minimum(low, 0.0), np.maximum(high, 0.0)


class Highspy:
    """With highspy: neuron by neuron."""

    @staticmethod
    def add_predictor_constr(h, predictor, x, y):
        *hidden, (last, offset) = layers(predictor)
        rows = [list(row) for row in x]
        for weights, biases in hidden:
            low, high = reach(len(rows), weights, biases)
            rows = [
                [
                    Highspy._relu(h, sum(w * v for w, v in zip(weights[:, k], row, strict=True)) + biases[k],
                                  low[i, k], high[i, k])
                    for k in range(len(biases))
                ]
                for i, row in enumerate(rows)
            ]  # fmt: skip
        for row, given in zip(rows, y, strict=True):
            told = sum(float(w) * v for w, v in zip(last[:, 0], row, strict=True)) + float(offset[0])
            h.addConstr(told == given[0])

    @staticmethod
    def _relu(h, into, low, high):
        out, active = h.addVariable(0.0, float(high)), h.addBinary()
        h.addConstr(out >= into)
        h.addConstr(out <= into - float(low) * (1 - active))
        h.addConstr(out <= float(high) * active)
        return out


class Linopy:
    """With linopy: a layer at once."""

    @staticmethod
    def add_predictor_constr(m, predictor, x, y):
        *hidden, (last, offset) = layers(predictor)
        seen = x
        for weights, biases in hidden:
            units = pd.RangeIndex(len(biases), name="unit")
            places = [x.indexes["sample"], units]
            low, high = (xr.DataArray(part, coords=places) for part in reach(x.shape[0], weights, biases))
            weighed = seen * xr.DataArray(weights, coords=[seen.indexes["feature"], units])
            into = weighed.sum("feature") + xr.DataArray(biases, coords=[units])
            out = m.add_variables(lower=0.0, upper=high, name="out")
            active = m.add_variables(binary=True, coords=places, name="active")
            m.add_constraints(out - into >= 0)
            m.add_constraints(out - into - low * active <= -low)
            m.add_constraints(out - high * active <= 0)
            seen = out.rename({"unit": "feature"})
        last = xr.DataArray(last[:, 0], coords=[seen.indexes["feature"]])
        m.add_constraints(y - (seen * last).sum("feature") == float(offset[0]))

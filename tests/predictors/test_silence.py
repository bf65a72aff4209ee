"""Warnings that an owner can do nothing about here are silenced, others pass, and nobody waits for it."""

import threading
import warnings

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression

from dovetail.predictors.silence import DEVICES, NAMES, silenced


def test_only_the_one_is_silenced_and_filters_are_as_before():
    before = list(warnings.filters)
    model = LinearRegression().fit(pd.DataFrame({"a": [0.0, 1.0]}), [0.0, 1.0])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with silenced(NAMES), silenced(DEVICES), silenced(NAMES):
            model.predict(np.zeros((1, 1)))
            warnings.warn(
                "[09:00:00] WARNING: a.cc:1:\nFalling back to prediction using DMatrix", stacklevel=1
            )
            warnings.warn("another", UserWarning, stacklevel=1)
        model.predict(np.zeros((1, 1)))
    assert [str(one.message)[:9] for one in said] == ["another", "X does no"]
    assert list(warnings.filters) == before


def test_the_user_s_own_filter_stays():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", NAMES, UserWarning)
        mine = list(warnings.filters)
        with silenced(NAMES):
            pass
        assert list(warnings.filters) == mine


def test_two_threads_are_within_at_once():
    before, both = list(warnings.filters), threading.Barrier(2, timeout=30.0)

    def work():
        with silenced(NAMES):
            both.wait()  # which a lock that is held within would keep from ever happening

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not both.broken
    assert list(warnings.filters) == before

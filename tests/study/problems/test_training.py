"""Training: learns what can be learnt, reports against the majority, and refuses a constant."""

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail_study.problems import networks
from dovetail_study.problems.networks import Recipe
from dovetail_study.problems.training import train_classifier, train_regressor


def data(rows=600):
    X = np.random.default_rng(0).normal(size=(rows, 4))
    return X, (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(float)


def test_learns_and_reports():
    torch.manual_seed(0)
    net = networks.build("2x16", 4)
    X, labels = data()
    report = train_classifier(net, X, labels, seed=0, recipe=Recipe(rate=5e-3))
    assert report.accuracy > report.majority + 0.2
    assert report.spread > 0.5
    assert report.parameters == sum(p.numel() for p in net.parameters())
    held = np.random.default_rng(0).permutation(600)[:120]
    share = labels[held].mean()
    assert report.majority == pytest.approx(max(share, 1 - share))
    assert "majority class" in str(report)


def test_a_dead_network_is_refused_unless_it_is_wanted():
    torch.manual_seed(0)
    X, labels = data(200)
    net = networks.build("40x8", 4, init="default")
    with pytest.raises(dt.PredictorError, match="says the same of everything.*allow_constant=True"):
        train_classifier(net, X, labels, seed=0, epochs=2)
    report = train_classifier(net, X, labels, seed=0, epochs=2, allow_constant=True)
    assert report.spread < 1e-3


def test_a_regressor_takes_raw_units_and_is_judged_against_the_mean():
    X = np.random.default_rng(0).normal(size=(600, 4)) * [1e3, 1.0, 1e-3, 1.0] + [5e3, 0.0, 1.0, 3.0]
    targets = 1e4 + 50.0 * ((X[:, 0] - 5e3) / 1e3 + ((X[:, 2] - 1.0) / 1e-3) ** 2)
    torch.manual_seed(0)
    net = networks.build("2x16", 4)
    report = train_regressor(net, X, targets, seed=0)
    held = np.random.default_rng(0).permutation(600)[:120]
    with torch.no_grad():
        wrong = net(torch.tensor(X[held])).numpy()[:, 0] - targets[held]
    assert report.r2 == pytest.approx(1.0 - (wrong**2).mean() / targets[held].var()) and report.r2 > 0.8
    assert report.error == pytest.approx(np.sqrt((wrong**2).mean()))
    assert "R2" in str(report) and report.parameters == sum(p.numel() for p in net.parameters())

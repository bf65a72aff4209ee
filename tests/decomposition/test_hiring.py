"""Where shares live: processes with several cores and many blocks, unless the predictor cannot go there."""

import io

import pytest

import dovetail as dt
from dovetail.decomposition import TemplatePricing, hiring
from dovetail.run import environment
from tests.conftest import FULL
from tests.structure.test_templates import treated


@pytest.fixture
def two_cores(monkeypatch):
    monkeypatch.setattr(environment, "cores", lambda: 2)
    monkeypatch.setattr("dovetail.solving.options.cores", lambda: 2)
    monkeypatch.setattr(hiring, "WORTH_SPREADING", 50)


@pytest.mark.skipif(not FULL, reason="volume: two processes; run/test_processes.py starts some always")
@pytest.mark.usefixtures("two_cores")
def test_many_blocks_are_spread_over_the_cores():
    log = io.StringIO()
    result = dt.solve(treated(60), TemplatePricing(), n_jobs=2, log=log, time_limit=60.0)
    assert dt.check(treated(60), result.x).within()
    assert "2 workers: " in log.getvalue()
    assert "MB in all" in log.getvalue()


@pytest.mark.usefixtures("two_cores")
def test_a_predictor_that_cannot_travel_stays_here():
    problem = treated(60)
    hidden = problem.blocks[0]
    local = dt.Problem(problem.mip)
    local.add_predictor(
        lambda X: hidden.predictor.predict(X), hidden.inputs, hidden.outputs, output_type="classification"
    )
    log = io.StringIO()
    result = dt.solve(local, TemplatePricing(rounds=1), n_jobs=2, log=log, time_limit=60.0)
    assert dt.check(local, result.x).within()
    assert "blocks stay in one process" in log.getvalue()
    assert "workers: " not in log.getvalue()

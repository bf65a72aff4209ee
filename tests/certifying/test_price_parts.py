"""Certificates of bounds at prices: made once more by signs, and looked at by the checker."""

from dataclasses import replace

import numpy as np
import pytest

import dovetail as dt
from dovetail.certificates.checker.verification import verify
from dovetail.certificates.proof import COST_ROW, CertificateKind
from dovetail.certifying.certify import certify
from dovetail.methods.component_prices.coupled_problem import CoupledProblem
from dovetail.methods.component_prices.prices import BlockPrices
from dovetail.methods.exact_mip import ExactMip
from dovetail.structure.structure import Structure
from tests.certificates.reference import graphs_of, network, problem_of
from tests.conftest import FULL
from tests.contexts import context_of
from tests.methods.component_prices.test_certified_prices import small_water


@pytest.fixture(scope="module", params=range(3 if FULL else 1))
def proved(request):
    problem = small_water(request.param, n=6)
    result = dt.solve(problem, method=BlockPrices(), log=False)
    assert result.bound_source == "prices"
    return problem, result


def looked_at(problem, certificate):
    return verify(problem, certificate, graphs_of(problem))


def test_a_bound_at_prices_is_proved_again(proved):
    problem, result = proved
    certificate = result.certificate
    assert certificate.kind is CertificateKind.CHECKED
    assert len(certificate.parts) == 6
    assert {part.row for part in certificate.parts} <= {-1, COST_ROW}
    found = dt.check(problem, result.x, certificate=certificate).verification
    assert found.holds
    exact = context_of(problem)
    ExactMip().solve(exact)
    assert exact.incumbent.objective <= found.bound + 1e-6, "the sense is max: no bound is below a point"
    assert found.bound <= result.bound + 1.0 + 1e-6, "a sample more, at most, than the solve had proved"


def test_prices_that_are_wrong_prove_less_and_nothing_wrong(proved):
    problem, result = proved
    (rows,) = np.nonzero(result.certificate.prices)
    rng = np.random.default_rng(0)
    for factor in (rng.uniform(0.5, 1.5, rows.size), -np.ones(rows.size)):
        prices = result.certificate.prices.copy()
        prices[rows] *= factor
        found = looked_at(problem, replace(result.certificate, prices=prices))
        assert not found.holds or result.objective <= found.bound
        assert found.bound is None or result.objective <= found.bound + 1e-6


def test_a_part_that_claims_too_much_is_seen(proved):
    """Its own cost is a row of its set: a larger claim makes a larger set, which must not close on itself."""
    problem, result = proved
    certificate = result.certificate
    parts = tuple(replace(part, value=part.value + 0.4) for part in certificate.parts)
    claimed = replace(certificate, parts=parts, bound=certificate.bound + 3.0)
    found = looked_at(problem, claimed)
    assert not found.holds
    assert found.bound is None or result.objective <= found.bound + 1e-6


def test_multipliers_that_are_left_out_prove_less(proved):
    problem, result = proved
    certificate = result.certificate
    least = looked_at(problem, certificate).bound
    for name in ("conditions", "neurons", "slopes"):
        without = [replace(part.tree.leaves, **{name: np.zeros((0, 0))}) for part in certificate.parts]
        trees = [replace(part.tree, leaves=one) for part, one in zip(certificate.parts, without, strict=True)]
        parts = [replace(part, tree=tree) for part, tree in zip(certificate.parts, trees, strict=True)]
        found = looked_at(problem, replace(certificate, parts=tuple(parts)))
        assert found.bound is None or found.bound >= least - 1e-9
    assert found.bound is None or result.objective <= found.bound


def test_a_cost_with_outputs_of_networks_is_no_row():
    problem = problem_of(network(1))
    result = dt.solve(problem, log=False)
    (part,) = result.certificate.parts
    found = looked_at(problem, replace(result.certificate, parts=(replace(part, row=COST_ROW),)))
    assert not found.holds
    assert "outputs of networks" in str(found)


@pytest.mark.parametrize("seed", range(3))
def test_prices_of_rows_and_of_sides(seed):
    coupled, rng = CoupledProblem.of(Structure(small_water(seed))), np.random.default_rng(seed)
    prices = rng.uniform(size=coupled.sides.count)
    assert np.allclose(coupled.sides.side_prices(coupled.row_prices(prices)), prices)


def test_without_time_it_proves_little_and_nothing_wrong(proved):
    problem, result = proved
    prices = result.certificate.prices
    made = certify(problem, -result.bound, "prices", 0.01, prices)
    found = looked_at(problem, made)
    assert found.holds
    assert result.objective <= found.bound

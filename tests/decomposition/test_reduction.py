"""A block's moves against the host: rows that define hold, costs and uses are the host's own."""

import pickle

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.decomposition.owners import columns_of
from dovetail.decomposition.plan import move_program, template_plan
from dovetail.structure.structure import Structure
from dovetail.structure.templates import FIXED
from tests.contexts import context_of
from tests.structure.stated_problems import treatments
from tests.structure.test_templates import shuffled, treated

from .families import blends, offers, sales


def program_of(problem):
    found = Structure(problem).templates
    (template,) = found.arrays
    return template, move_program(template, found.sides)


def made_columns(program, moves, outputs):
    """(n, c) local columns."""
    columns = [*columns_of(program, torch.as_tensor(moves), torch.as_tensor(outputs))]
    return np.stack([np.broadcast_to(column.numpy(), len(moves)) for column in columns], axis=1)


@pytest.mark.parametrize(
    "problem",
    [treated(8), shuffled(treated(8), 1), offers(8), offers(8, sides=(0.1, 0.1)), blends(8), sales(8)],
)
def test_costs_uses_and_definitions_are_the_host_s(problem):
    (template, program), mip, rng = program_of(problem), problem.mip, np.random.default_rng(0)
    k, n = program.coordinates, program.count
    moves = rng.uniform(np.maximum(program.lower, -1.0), np.minimum(program.upper, 1.0))
    outputs = rng.random((n, len(program.output_columns)))
    z = np.where(mip.lower == mip.upper, mip.lower, 0.0)
    z[template.columns] = made_columns(program, moves, outputs)

    parts = np.concatenate([np.maximum(moves, 0), np.maximum(-moves, 0), outputs, np.ones((n, 1))], axis=1)
    assert parts.shape[1] == 2 * k + outputs.shape[1] + 1
    assert np.sum(program.cost * parts) == pytest.approx(mip.sign * float(mip.cost @ z))
    use = np.zeros(program.sides.count)
    np.add.at(use, program.use_side, (program.use * parts[:, program.use_part]).sum(axis=0))
    assert use == pytest.approx(program.sides.sign * (mip.A @ z)[program.sides.row])

    value = np.einsum("nck,nk->nc", program.on_moves, moves)
    value += np.einsum("ncq,nq->nc", program.on_outputs, outputs)
    coupling = np.zeros(mip.n_rows, dtype=bool)
    coupling[program.sides.row] = True
    missed = np.maximum(mip.row_violation(z)[~coupling].max(initial=0.0), mip.bound_violation(z).max())
    short = np.maximum(program.least - value, 0.0).max(initial=0.0)
    assert short == pytest.approx(missed, abs=1e-9)  # what no condition sees, nothing misses
    for reading, network in zip(program.networks, template.networks, strict=True):
        u = reading.at_rest + moves @ reading.by_moves.T
        read = np.where(network.inputs == FIXED, network.data, z[template.columns[:, network.inputs]])
        np.testing.assert_allclose(u, read, rtol=1e-12, atol=1e-12)
        samples = {tuple(row) for row in problem.blocks[reading.block].inputs}
        own = template.columns[:, network.inputs]
        assert FIXED in network.inputs or {tuple(row) for row in own} == samples


def test_pairs_of_moves_are_one_coordinate():
    assert program_of(treated(8))[1].coordinates == 3


def test_chained_networks_have_no_program():
    problem = blends(8)
    columns = np.arange(40).reshape(8, 5)
    mip = problem.mip
    chained = dt.Problem(
        dt.Mip(mip.cost, mip.A, mip.row_lower, mip.row_upper, mip.lower, mip.upper, sense="max")
    )
    chained.add_predictor(problem.blocks[0].predictor, columns[:, :3], columns[:, 3:4])
    chained.add_predictor(problem.blocks[1].predictor, columns[:, [0, 1, 3]], columns[:, 4:5])
    assert program_of(chained)[1] is None


def test_parts_of_a_program_are_its_blocks():
    """Every array is cut where it has a row per block, and the usual move stays that of all."""
    _, program = program_of(blends(8))
    whole, part = vars(program), vars(program.part(2, 5))
    assert program.part(2, 5).count == 3
    for name in ("lower", "upper", "cost", "use", "on_moves", "on_outputs", "least"):
        assert np.array_equal(part[name], whole[name][2:5])
    for mine, column in zip(part["rest"], program.rest, strict=True):
        assert np.array_equal(mine, column if len(column) == 1 else column[2:5])
    for mine, reading in zip(part["networks"], program.networks, strict=True):
        assert np.array_equal(mine.at_rest, reading.at_rest[2:5])
    assert part["scale"] is whole["scale"]


def test_a_program_travels_without_what_is_the_same_in_all_blocks():
    problem = treatments(400)
    plan = template_plan(context_of(problem))
    (program,) = plan.programs
    letter = pickle.dumps(program.part(100, 300))
    there = pickle.loads(letter)
    for name in ("lower", "upper", "cost", "use", "least"):
        assert np.array_equal(getattr(there, name), getattr(program, name)[100:300]), name
    varied = [column for column in program.rest if len(column) > 1]
    assert [len(column) for column in there.rest if len(column) > 1] == [200] * len(varied)
    own = len(varied) + program.networks[0].at_rest.shape[1]
    assert len(letter) < 200 * 8 * own + 8000

"""The order of predictors: the longest chain to a sample, whatever the blocks look like."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.core.problem import stages


def chained(inputs, outputs, columns):
    """Blocks over given (n, d) inputs and (n, 1) outputs."""
    problem = dt.Problem(dt.Mip(np.zeros(columns), lower=-1.0, upper=1.0))
    for into, out in zip(inputs, outputs, strict=True):
        problem.add_predictor(lambda X: X.sum(axis=1), into, out)
    return problem


def levels(problem):
    """By (block, sample), as the stages have them."""
    return {
        (block.name, int(i)): depth
        for depth, stage in enumerate(problem.stages)
        for block, samples in stage
        for i in samples
    }


def longest_chain(problem):
    """The same, by its definition."""
    writer = {int(out[0]): (b, i) for b in problem.blocks for i, out in enumerate(b.outputs)}

    def depth(block, i):
        sources = [writer[int(j)] for j in block.inputs[i] if int(j) in writer]
        return max((1 + depth(*source) for source in sources), default=0)

    return {(block.name, i): depth(block, i) for block in problem.blocks for i in range(block.samples)}


@pytest.mark.parametrize("seed", range(20))
def test_a_sample_comes_after_all_that_it_reads(seed):
    rng = np.random.default_rng(seed)
    free, written = 4, 12  # the k-th written column is read by later ones only
    blocks = np.split(rng.permutation(written), sorted(rng.choice(np.arange(1, written), 3, replace=False)))
    inputs = [[rng.integers(0, free + k, 2).tolist() for k in block] for block in blocks]
    outputs = [[[free + k] for k in block.tolist()] for block in blocks]
    problem = chained(inputs, outputs, free + written)
    assert levels(problem) == longest_chain(problem)
    assert all(np.all(np.diff(samples) > 0) for stage in problem.stages for _, samples in stage)


def test_there_are_no_stages_without_blocks():
    assert stages(dt.Mip([1.0]), ()) == ()


def test_a_cycle_is_named_by_a_sample_on_it_and_not_behind_it():
    problem = chained([[[0], [2]]], [[[1], [3]]], 4)
    with pytest.raises(dt.PredictorError, match=r"block1 \(sample 0, output x\[2\]\) depends on its own"):
        problem.add_predictor(lambda X: X, [[2]], [[2]])
    with pytest.raises(dt.PredictorError, match="cycle of predictors"):
        problem.add_predictor(lambda X: X, [[3], [0]], [[2], [0]])
    assert len(problem.blocks) == 1

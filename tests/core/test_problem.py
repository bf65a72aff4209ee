"""Problem: shapes, names, order of evaluation, and what it refuses.

The order of predictors: the longest chain to a sample, whatever the blocks look like.
"""

import numpy as np
import pytest
import torch
from torch import nn

import dovetail as dt
from dovetail.core.problem import stages
from tests.small import linear_net


def host(columns=6, **changes):
    arguments = {"cost": np.zeros(columns), "lower": -1.0, "upper": 1.0}
    return dt.Mip(**{**arguments, **changes})


def test_a_vector_is_one_sample():
    problem = dt.Problem(host())
    block = problem.add_predictor(linear_net([1.0, 2.0]), [0, 1], [2])
    assert block.inputs.shape == (1, 2)
    assert block.outputs.shape == (1, 1)


def test_names_and_samples():
    mip = host(names=list("abcdef"))
    block = dt.Problem(mip).add_predictor(linear_net([1.0, 2.0]), [["a", "b"], ["b", "c"]], [["e"], ["f"]])
    assert block.inputs.tolist() == [[0, 1], [1, 2]]


def test_predict_goes_through_chains_in_order():
    problem = dt.Problem(host())
    # added in the wrong order on purpose: y5 = 10 y4, y4 = x0 + x1
    problem.add_predictor(linear_net([10.0]), [4], [5], name="second")
    problem.add_predictor(linear_net([1.0, 1.0]), [0, 1], [4], name="first")
    x = problem.predict(np.array([0.25, 0.5, 0.0, 0.0, 0.0, 0.0]))
    assert x[4] == 0.75
    assert x[5] == 7.5
    assert [[block.name for block, _ in stage] for stage in problem.stages] == [["first"], ["second"]]


def test_one_network_can_feed_itself_from_sample_to_sample():
    # a state equation: x[t+1] = 0.5 x[t] for three steps, one network, three samples
    problem = dt.Problem(host(4))
    problem.add_predictor(linear_net([0.5]), [[0], [1], [2]], [[1], [2], [3]])
    assert problem.predict(np.array([1.0, 0.0, 0.0, 0.0])).tolist() == [1.0, 0.5, 0.25, 0.125]
    assert len(problem.stages) == 3


def test_independent_samples_are_one_batch():
    problem = dt.Problem(host(6))
    problem.add_predictor(linear_net([1.0]), [[0], [1], [2]], [[3], [4], [5]])
    ((_, samples),) = problem.stages[0]
    assert samples.tolist() == [0, 1, 2]


def test_classes_are_thresholds_and_one_hots():
    problem = dt.Problem(host(6))
    problem.add_predictor(linear_net([1.0]), [0], [1], output_type="classification")
    problem.add_predictor(linear_net([[1.0], [2.0], [-1.0]]), [0], [2, 3, 4], output_type="classification")
    assert problem.predict(np.array([0.5, 0, 0, 0, 0, 0.0]))[1:5].tolist() == [1.0, 0.0, 1.0, 0.0]
    assert problem.predict(np.array([-0.5, 0, 0, 0, 0, 0.0]))[1:5].tolist() == [0.0, 0.0, 0.0, 1.0]
    assert problem.predict(np.zeros(6))[1] == 1.0  # at the threshold it is class 1


def test_threshold_is_read_off_the_last_operation():
    logits = dt.Problem(host(3)).add_predictor(
        linear_net([1.0, 1.0]), [0, 1], [2], output_type="classification"
    )
    assert logits.threshold == 0.0
    ends_in_sigmoid = nn.Sequential(linear_net([1.0, 1.0]), nn.Sigmoid(), nn.Flatten())
    probability = dt.Problem(host(3)).add_predictor(
        ends_in_sigmoid, [0, 1], [2], output_type="classification"
    )
    assert probability.threshold == 0.5


def test_threshold_that_nothing_tells_is_asked_for():
    def squash(X):
        return 1.0 / (1.0 + np.exp(-X.sum(axis=1)))

    problem = dt.Problem(host(3))
    with pytest.raises(dt.PredictorError, match="threshold=0.5 or threshold=0"):
        problem.add_predictor(squash, [0, 1], [2], output_type="classification")
    assert problem.blocks == ()
    assert (
        problem.add_predictor(squash, [0, 1], [2], output_type="classification", threshold=0.5).threshold
        == 0.5
    )


class CountsTheBatch(nn.Module):
    def forward(self, x):
        return x.sum(dim=1, keepdim=True) - x.mean()


class Noisy(nn.Module):
    def forward(self, x):
        return x.sum(dim=1, keepdim=True) + torch.randn(len(x), 1, dtype=x.dtype)


def sequence_first_lstm():
    class Wrong(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(2, 4)  # without batch_first a batch is read as a sequence

        def forward(self, x):
            return self.lstm(x)[0][:, :1]

    torch.manual_seed(0)
    return Wrong()


def poisoned(value):
    net = linear_net([1.0, 1.0])
    with torch.no_grad():
        net.weight[0, 1] = value
    return net


@pytest.mark.parametrize(
    ("predictor", "inputs", "outputs", "options", "error", "culprit"),
    [
        (linear_net([1.0, 1.0]), [[0, 1], [1, 2]], [[3]], {}, dt.PredictorError, "2 samples.*1 "),
        (linear_net([1.0, 1.0]), [0, 1, 2], [3], {}, dt.PredictorError, "takes 2 features"),
        (linear_net([1.0, 1.0]), [0, 1], [2, 3], {}, dt.PredictorError, r"\(16, 1\).*2 variables"),
        (linear_net([1.0, 1.0]), [[[0, 1]]], [3], {}, dt.PredictorError, r"\(1, 1, 2\)"),
        (linear_net([1.0, 1.0]), [], [3], {}, dt.PredictorError, "inputs"),
        (linear_net([1.0, 1.0]), [0, 9], [3], {}, dt.ModelError, "variable 9"),
        (linear_net([1.0, 1.0]), ["a", "b"], [3], {}, dt.ModelError, "without names"),
        (linear_net([1.0, 1.0]), [0, 1], [1], {}, dt.PredictorError, "cycle"),
        (linear_net([1.0, 1.0]), [[0, 1], [1, 2]], [[3], [3]], {}, dt.PredictorError, r"x\[3\].*two places"),
        (linear_net([1.0, 1.0]), [0, 1], [3], {"output_type": "ranking"}, dt.PredictorError, "ranking"),
        (linear_net([1.0, 1.0]), [0, 1], [3], {"threshold": 0.5}, dt.PredictorError, "threshold="),
        (linear_net([1.0, 1.0]), [0, 1], [3], {"epsilon": np.nan}, dt.OptionError, "epsilon"),
        (
            linear_net([1.0, 1.0]), [0, 1], [3],
            {"output_type": "classification", "threshold": np.inf}, dt.OptionError, "threshold is inf",
        ),
        (poisoned(np.nan), [0, 1], [3], {}, dt.PredictorError, "weight holds NaN"),
        (poisoned(np.inf), [0, 1], [3], {}, dt.PredictorError, "weight holds NaN or infinity"),
        (CountsTheBatch(), [0, 1], [3], {}, dt.PredictorError, "other samples in the batch"),
        (sequence_first_lstm(), [0, 1], [3], {}, dt.PredictorError, "other samples in the batch"),
        (Noisy(), [0, 1], [3], {}, dt.PredictorError, "deterministic"),
        (lambda X: np.full(len(X), np.nan), [0, 1], [3], {}, dt.PredictorError, "nan"),
        (lambda X: X.sum(), [0, 1], [3], {}, dt.PredictorError, r"shape \(\)"),
        (nn.LSTM(2, 1, batch_first=True, dtype=torch.float64), [0, 1], [3], {}, dt.PredictorError, "tuple"),
        ("a string", [0, 1], [3], {}, dt.PredictorError, "builtins.str is not a predictor"),
    ],
)  # fmt: skip
def test_refuses_by_name_and_keeps_nothing(predictor, inputs, outputs, options, error, culprit):
    problem = dt.Problem(host())
    with pytest.raises(error, match=culprit):
        problem.add_predictor(predictor, inputs, outputs, **options)
    assert problem.blocks == ()


def test_refuses_a_second_writer_and_a_longer_cycle():
    problem = dt.Problem(host())
    problem.add_predictor(linear_net([1.0]), [0], [1], name="there")
    with pytest.raises(dt.PredictorError, match=r"x\[1\] is an output of again and there"):
        problem.add_predictor(linear_net([1.0]), [2], [1], name="again")
    with pytest.raises(dt.PredictorError, match="cycle"):
        problem.add_predictor(linear_net([1.0]), [1], [0], name="back")
    with pytest.raises(dt.PredictorError, match="already a block called 'there'"):
        problem.add_predictor(linear_net([1.0]), [2], [3], name="there")
    assert [block.name for block in problem.blocks] == ["there"]


def test_refuses_what_is_not_a_mip():
    with pytest.raises(dt.ModelError, match="builtins.dict"):
        dt.Problem({"cost": [1.0]})


def test_many_blocks_are_added_in_time_that_grows_with_them():
    columns = 4000
    mip = dt.Mip(np.zeros(columns), lower=-1.0, names=[f"c{j}" for j in range(columns)])
    p = dt.Problem(mip)
    counts = {"stages": 0}
    import dovetail.core.problem as module

    before = module.stages

    def counted(*args):
        counts["stages"] += 1
        return before(*args)

    module.stages = counted
    try:
        for k in range(40):
            p.add_predictor(lambda X: X.sum(axis=1), [f"c{3 * k}", f"c{3 * k + 1}"], [f"c{3 * k + 2}"])
    finally:
        module.stages = before
    assert counts["stages"] == 0
    assert len(p.stages) == 1


def test_a_problem_shows_what_it_is():
    problem = dt.Problem(dt.Mip(np.zeros(4), integer=[True, False, False, False], upper=1.0, sense="max"))
    assert repr(problem) == "<Problem: maximise over 4 columns (1 integer), 0 rows; no predictor>"
    problem.add_predictor(abs, [[0], [1]], [[2], [3]], name="<net>")
    assert repr(problem).endswith("; <net>: abs (regression), 2 samples of 1 -> 1>")
    assert "&lt;net&gt;" in problem._repr_html_() and "<net>" not in problem._repr_html_()
    empty = dt.Problem(sense="min")
    empty.add_template(1000, {"a": dt.Family(upper=1.0)}, name="t")
    assert (
        repr(empty)
        == "<Problem: minimise over 1000 columns, <Template 't': 1000 blocks of a (1)>; no predictor>"
    )


def test_problems_with_common_arrays_do_not_see_each_others_blocks():
    problem = dt.Problem(dt.Mip(cost=np.zeros(4), upper=1.0))
    problem.add_predictor(lambda X: X.sum(axis=1), [[0]], [[1]])
    other = problem.with_predictors(problem.blocks)
    other.add_predictor(lambda X: X.sum(axis=1), [[0]], [[2]])
    problem.add_predictor(lambda X: X.sum(axis=1), [[3]], [[2]])
    assert problem.inputs.tolist() == [0, 3] and other.inputs.tolist() == [0]
    assert problem.outputs.tolist() == other.outputs.tolist() == [1, 2]


def test_an_unnamed_block_gets_a_name_that_is_free():
    problem = dt.Problem(dt.Mip(cost=[0.0] * 4))
    problem.add_predictor(lambda X: X, [0], [1], name="block1")
    assert problem.add_predictor(lambda X: 2.0 * X, [0], [2]).name == "block2"


def test_a_predictor_that_reads_no_number_is_not_asked():
    """1 / x at 0 feeds a predictor that refuses what is not finite: no prediction, and no error."""
    problem = dt.Problem(dt.Mip(np.zeros(3), lower=[-1.0, -np.inf, -np.inf], upper=[1.0, np.inf, np.inf]))
    problem.add_predictor(lambda X: np.divide(1.0, X, where=X != 0.0, out=np.full_like(X, np.nan)), [0], [1])

    def strict(X):
        assert np.isfinite(X).all()
        return 2.0 * X

    problem.add_predictor(strict, [1], [2])
    assert np.isnan(problem.predict(np.zeros(3))[1:]).all()
    assert problem.predict(np.array([0.5, 0.0, 0.0]))[2] == 4.0


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

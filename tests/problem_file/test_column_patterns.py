"""Patterns of names, and the samples they make."""

import pytest

import dovetail as dt
from dovetail.problem_file.column_patterns import NamedColumns
from dovetail.problem_file.document import Document
from dovetail.problem_file.predictors import read_samples


def samples(names, inputs, outputs):
    content = {"predictor": [{"inputs": inputs, "outputs": outputs}]}
    return read_samples(Document("p.toml", None, content, {}), ("predictor", 0), NamedColumns(names))


NAMES = ["x[10]", "x[2]", "x[1]", "y", "a[1,1]", "a[1,2]", "a[2,2]", "a[2,1]", "b[1]", "b[2]", "t"]


def test_stars_come_in_the_order_of_their_numbers():
    assert samples(NAMES, "x[*]", "y") == ([["x[1]", "x[2]", "x[10]"]], [["y"]])
    assert samples(NAMES, ["t", "a[*,*]", 2], ["y"]).inputs == [
        ["t", "a[1,1]", "a[1,2]", "a[2,1]", "a[2,2]", 2.0]
    ]
    assert samples(["x-1", "x-10", "x-2", "y"], ["x*"], ["y"]).inputs == [["x-10", "x-2", "x-1"]]


def test_placeholders_make_one_sample_for_each_output():
    found = samples(NAMES, ["a[{i},*]", "t", 0.5], ["b[{i}]"])
    assert found.inputs == [["a[1,1]", "a[1,2]", "t", 0.5], ["a[2,1]", "a[2,2]", "t", 0.5]]
    assert found.outputs == [["b[1]"], ["b[2]"]]


def test_inputs_may_have_some_of_the_placeholders():
    names = ["p[a]", "p[b]", "q[1]", "d[a,1]", "d[b,1]"]
    found = samples(names, ["p[{what}]", "q[{when}]"], ["d[{what},{when}]"])
    assert found.inputs == [["p[a]", "q[1]"], ["p[b]", "q[1]"]]


def test_a_placeholder_twice_is_the_same_both_times():
    names = ["d[1,1]", "d[1,2]", "d[2,2]", "z[1]", "z[2]"]
    assert samples(names, ["d[{i},{i}]"], ["z[{i}]"]).inputs == [["d[1,1]"], ["d[2,2]"]]


def test_lists_of_lists_are_samples():
    found = samples(NAMES, [["x[1]", 1.0], ["x[2]", 2]], [["b[1]"], ["b[2]"]])
    assert found.inputs == [["x[1]", 1.0], ["x[2]", 2.0]]
    assert samples(NAMES, [["x[1]"], ["x[2]"]], ["b[1]", "b[2]"]).outputs == [["b[1]"], ["b[2]"]]
    assert samples(NAMES, [["a[1,*]"], ["a[2,*]"]], ["b[1]", "b[2]"]).inputs[1] == ["a[2,1]", "a[2,2]"]


def test_a_name_that_a_column_has_is_that_column():
    assert samples(["x*", "x1", "{i}", "y"], ["x*", "{i}"], ["y"]).inputs == [["x*", "{i}"]]


@pytest.mark.parametrize(
    ("inputs", "outputs", "said"),
    [
        (["x[3]"], ["y"], "no variable 'x[3]'; did you mean 'x["),
        (["X[1]"], ["y"], "did you mean 'x[1]'?"),
        (["z[*]"], ["y"], "no variable matches 'z[*]'"),
        (["x[{i}]"], ["y"], "has other placeholders than the output 'y'"),
        (["x[{i}]"], ["a[{j},1]"], "'x[{i}]' has other placeholders"),
        (["t"], ["b[{i}]", "y"], "'y' has other placeholders"),
        (["x[{i}]"], ["nothing[{i}]"], "no variable matches 'nothing[{i}]'"),
        (["b[{i}]"], ["x[{i}]"], "no variable matches 'b[{i}]' with {i} = 10"),
        ([["x[1]"], ["x[2]"]], [["y"]] * 3, "inputs has 2 samples, outputs has 3"),
        ([["x[{i}]"], ["x[2]"]], ["b[1]", "b[2]"], "stands for many samples"),
    ],
)
def test_what_cannot_be_is_refused(inputs, outputs, said):
    with pytest.raises(dt.DovetailError) as refusal:
        samples(NAMES, inputs, outputs)
    assert said in str(refusal.value)


def test_words_at_a_star_have_no_order():
    with pytest.raises(dt.ModelError, match="stands for whole numbers; write the names out"):
        samples(["x[cement]", "x[1]", "y"], "x[*]", "y")


def test_what_can_be_read_in_two_ways_is_refused():
    with pytest.raises(dt.ModelError, match="two ways at 'x_1_2_3'"):
        samples(["x_1_2_3", "y_1"], "x_{i}_*", "y_{i}")

"""Training inputs in files."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import dovetail as dt
from dovetail.problem_file.predictors import read_training_table


def written(tmp_path, text, name="d.csv"):
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return tmp_path / name


def test_a_line_of_names_is_optional_and_cells_may_be_empty(tmp_path):
    table = read_training_table(written(tmp_path, "\ufeffa, b\n1,2\n3,\n\n"))
    assert table.columns == ("a", "b")
    assert np.array_equal(np.asarray(table), [[1.0, 2.0], [3.0, np.nan]], equal_nan=True)
    table = read_training_table(written(tmp_path, "1,2\r\n3,4e1\r\n"))
    assert table.columns is None
    assert np.asarray(table).tolist() == [[1.0, 2.0], [3.0, 40.0]]


def test_of_more_columns_those_with_the_features_names_are_taken(tmp_path):
    table = read_training_table(written(tmp_path, "y,b,a\n1,2,3\n"))
    assert np.asarray(table.of(["a", "b"])).tolist() == [[3.0, 2.0]]
    assert table.of(["a", "b"]).columns == ("a", "b")
    assert np.asarray(table.of(["a_wall", "b[wall]"])).tolist() == [[3.0, 2.0]]
    assert table.of(["a_1", "a_2"]) is table  # which of them is b?
    assert table.of(["a", "z"]) is table  # the count will say what is wrong
    assert table.of(["a", 2.0]) is table


def test_numpy_files(tmp_path):
    np.save(tmp_path / "d.npy", np.eye(2))
    assert np.asarray(read_training_table(tmp_path / "d.npy")).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    np.save(tmp_path / "o.npy", np.array([{}], dtype=object))
    with pytest.raises(dt.PredictorError, match="is no table of numbers"):
        read_training_table(tmp_path / "o.npy")


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "is empty"), ("a,b\n1,2\n1\n", "row 2 has 1 cells, the first has 2"), ("a,b\n1,x\n", "'x'"),
     (b"\xff\xfe\x00", "is no table of numbers")],
)  # fmt: skip
def test_what_is_no_table_is_refused(tmp_path, text, said):
    with pytest.raises(dt.PredictorError, match=said):
        read_training_table(written(tmp_path, text))


def test_names_of_the_predictors_features_have_their_order(tmp_path):
    """Columns of the problem are called otherwise here: the file's names can only be the predictor's."""
    frame = pd.DataFrame({"b": [1.0, 2.0], "a": [3.0, 5.0]})
    model = LinearRegression().fit(frame, [1.0, 2.0])
    problem = dt.Problem(dt.Mip(cost=[0.0, 0.0, 1.0], lower=0.0, upper=9.0, names=("u", "v", "y")))
    table = read_training_table(written(tmp_path, "a,b\n3,1\n5,2\n")).of(["u", "v"])
    with pytest.raises(dt.PredictorError, match="data has the columns a, b, .* trained on b, a"):
        dt.add_predictor_constr(problem, model, [["u", "v"]], [["y"]], data=table)
    ordered = read_training_table(written(tmp_path, "b,a\n1,3\n2,5\n")).of(["u", "v"])
    dt.add_predictor_constr(problem, model, [["u", "v"]], [["y"]], data=ordered)
    assert problem.blocks[0].training_range.upper.tolist() == [2.0, 5.0]

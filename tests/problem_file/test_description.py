"""Problem files: what they say becomes a problem, and what is wrong is named with its line."""

import shutil

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.cli.init_command import write_example
from dovetail.problem_file.description import FileDescription


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("example")
    write_example(folder)
    return folder


@pytest.fixture
def example(original, tmp_path):
    return shutil.copytree(original, tmp_path / "example")


def changed(folder, before, after):
    """The example with one thing changed, and the line on which that is."""
    file = folder / "problem.toml"
    text = file.read_text()
    assert text.count(before) == 1, before
    file.write_text(text.replace(before, after))
    return file, text[: text.index(before)].count("\n") + 1


def test_the_example_is_a_problem(example):
    description = FileDescription.read(example / "problem.toml")
    description.require_options()
    problem = description.problem()
    (block,) = problem.blocks
    assert block.name == "strength"
    assert block.inputs.shape == (3, 3)
    names = [[problem.mip.column_name(j) for j in row] for row in block.inputs]
    assert names[0] == ["cement_wall", "ash_wall", "water_wall"]
    assert block.training_range.names == ("cement", "ash", "water")
    assert description.options == {"time_limit": 20, "gap": 0.0, "seed": 0}
    assert isinstance(description.method(), dt.Auto)
    assert description.output("report") == example / "result.html"
    assert description.start is None


def read_whole(file):
    """All that a solve asks for."""
    description = FileDescription.read(file)
    description.require_options()
    return description.method(), description.start, description.problem()


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('model = "plan.lp" ', 'modle = "plan.lp" ', "no key 'modle'; did you mean 'model'?"),
        ('model = "plan.lp" ', 'model = "plan.mps" ', "plan.mps"),
        ('model = "plan.lp" ', 'model = "training.csv" ', "the name must end in .mps"),
        ('model = "plan.lp" ', "model = 3 ", "model is 3, but takes text in quotes"),
        ('file = "strength.pt" ', 'file = "strength.onnx" ', "there is no file"),
        ('file = "strength.pt" ', 'file = "plan.lp" ', "no kind of file dovetail reads"),
        ('activation = "relu"', 'activation = "relo"', "did you mean 'relu'?"),
        ('activation = "relu"', "aktivation = 1", "[predictor] has no key 'aktivation'; did you mean"),
        ('"ash_{mix}", "w', '"ahs_{mix}", "w', "no variable matches 'ahs_{mix}' with {mix} = wall"),
        ('"ash_{mix}", "w', '"asch_{mix}", "w', "with {mix} = wall; did you mean 'ash_wall'?"),
        ('outputs = ["strength_{mix}"]', 'outputs = ["strenght_{mix}"]', "'; did you mean 'strength_"),
        ('outputs = ["strength_{mix}"]', 'outputs = ["strength_wal"]', "did you mean 'strength_wall'?"),
        ('outputs = ["strength_{mix}"]', "outputs = [1.0]", "outputs is [1.0], but takes a list of names"),
        ('outputs = ["strength_{mix}"]', "outputs = []", "outputs is [], but takes"),
        ('data = "training.csv" ', 'data = "training.xls" ', "there is no file"),
        ('data = "training.csv" ', 'data = "plan.lp" ', "is no table of numbers"),
        ("time_limit = 20 ", 'time_limit = "20" ', "time_limit is '20', but takes a number"),
        ("time_limit = 20 ", "time_limit = -20 ", "time_limit (seconds; None or inf: no limit) is -20"),
        ("time_limit = 20 ", "timelimit = 20 ", "did you mean 'time_limit'?"),
        ("gap = 0.0 ", "gap = nan ", "gap (relative) is nan"),
        ("seed = 0", "seed = 0.5", "seed is 0.5, but takes a whole number"),
        ("seed = 0", 'start = "no.json"', "there is no file"),
        ('report = "result.html"', "report = true", "report is True, but takes text"),
        ("[output]", "[outputs]", "no key 'outputs'; did you mean 'output'?"),
        ('name = "auto" ', 'name = "auto2" ', "name is 'auto2'; did you mean 'auto'?"),
        ('name = "auto" ', "rho = 1 ", "auto has no option 'rho'"),
        ('name = "auto" ', 'name = "dual-decomposition"\nrho = -1', "rho is -1"),
        ('name = "auto" ', 'name = "paper-adaptive"\nrho = 1', "it has none"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_line(example, before, after, said):
    file, line = changed(example, before, after)
    line += after.count("\n")
    with pytest.raises(dt.DovetailError) as refusal:
        read_whole(file)
    assert said in str(refusal.value)
    assert str(refusal.value).startswith(f"{file}, line {line}: "), refusal.value


def test_an_input_too_few_is_not_blamed_on_the_data(example):
    file, _ = changed(example, '"cement_{mix}", "ash_{mix}", "water_{mix}"]', '"cement_{mix}", "ash_{mix}"]')
    with pytest.raises(dt.PredictorError, match=r"strength: inputs has 2 variables .* takes 3 features"):
        read_whole(file)


def test_a_missing_key_is_named_with_the_table_that_lacks_it(example):
    file, line = changed(example, "[[predictor]]", "[[predictor]]\n[[predictor]]")
    with pytest.raises(dt.OptionError, match=rf"line {line}: \[predictor\] needs the key 'file'"):
        FileDescription.read(file)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"model = ", "is no TOML: Invalid value (at end of document)"),
        (b"model = 'a'\nmodel = 'b'\n", "at line 2"),
        (b"\xff\xfe", "no text in UTF-8"),
        (b"", "needs the key 'model'"),
        (b"predictor = 1\nmodel = 'plan.lp'", "line 1: predictor is 1, but takes one or more tables; wr"),
        (b"model = 'plan.lp'\n[predictor]\n", "line 2: predictor is {}, but takes one or more tables"),
        (b"a = " + b"[" * 100_000, "nested too deeply"),
        (b"a = " + b"9" * 10_000, "a number is too long"),
    ],
)  # fmt: skip
def test_files_that_are_no_problem_files(example, text, said):
    file = example / "problem.toml"
    file.write_bytes(text)
    with pytest.raises(dt.OptionError) as refusal:
        FileDescription.read(file)
    assert said in str(refusal.value)
    assert str(refusal.value).startswith(str(file))


def test_folders_and_missing_files_are_refused(tmp_path):
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(dt.OptionError, match="is no file"):
        FileDescription.read(tmp_path / "folder.toml")
    with pytest.raises(dt.OptionError, match="there is no file"):
        FileDescription.read(tmp_path / "none.toml")


def test_methods_take_options_and_parts_with_options(example):
    method = """name = "dual-decomposition"
rho = 3.0
iterations = 7
nn_solver = { name = "ProjectedGradient", steps = 25 }
penalty = { name = "FixedPenalty" }
"""
    file, _ = changed(example, 'name = "auto" ', f"{method} #")
    found = FileDescription.read(file).method()
    assert found == dt.DualDecomposition(
        rho=3.0, iterations=7, nn_solver=dt.ProjectedGradient(steps=25), penalty=dt.FixedPenalty()
    )


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ('{ name = "ProjectedGradient", step = 2 }', "no option 'step'; did you mean 'steps'?"),
        ('{ name = "ProjectedGradient", steps = -2 }', "steps is -2"),
        ('{ name = "projectedgradient" }', "did you mean 'ProjectedGradient'?"),
        ("{ steps = 2 }", "name is ''"),
        ('"ProjectedGradient"', "nn_solver is 'ProjectedGradient'"),
    ],
)
def test_parts_of_methods_that_cannot_be(example, part, said):
    file, line = changed(example, 'name = "auto" ', f'name = "dual-decomposition"\nnn_solver = {part} #')
    with pytest.raises(dt.OptionError) as refusal:
        FileDescription.read(file).method()
    assert said in str(refusal.value)
    assert f"problem.toml, line {line + 1}: " in str(refusal.value)


def test_classes_numbers_and_written_out_samples(tmp_path):
    (tmp_path / "m.lp").write_text(
        "minimize\n o: a + b\nsubject to\n r: a + b + p + q <= 9\n"
        "bounds\n a <= 2\n b <= 2\nbinary\n p q\nend\n"
    )
    net = torch.nn.Linear(2, 1, dtype=torch.float64)
    torch.save(net.state_dict(), tmp_path / "n.pt")
    (tmp_path / "p.toml").write_text(
        """model = "m.lp"
[[predictor]]
file = "n.pt"
activation = "tanh"
inputs = [["a", 0.5], ["b", 2]]
outputs = ["p", "q"]
output_type = "classification"
threshold = 0.25
epsilon = 1e-3
"""
    )
    problem = FileDescription.read(tmp_path / "p.toml").problem()
    (block,) = problem.blocks
    assert (block.threshold, block.epsilon, block.classifies) == (0.25, 1e-3, True)
    values = problem.mip.lower[block.inputs]
    assert values[:, 1].tolist() == [0.5, 2.0]
    x = problem.predict(np.concatenate([[1.0, 1.0, 0.0, 0.0], problem.mip.lower[4:]]))
    with torch.no_grad():
        told = net(torch.tensor([[1.0, 0.5], [1.0, 2.0]], dtype=torch.float64)).ravel() >= 0.25
    assert x[problem.mip.resolve("", ["p", "q"])].tolist() == told.double().tolist()

"""A model and a network in files: strength = cement + 0.5 ash."""

import numpy as np
import onnx

PLAN = """NAME plan
ROWS
 N cost
 G need
COLUMNS
 cement cost 2 need 1
 ash cost 1
 x[1,1] need 0
 strength need 1
BOUNDS
 UP b cement 9
 UP b ash 4
 UP b x[1,1] 1
 FR b strength
RHS
 r need 6
ENDATA
"""


def write_plan(folder):
    """plan.mps and strength.onnx."""
    (folder / "plan.mps").write_text(PLAN)
    weight = onnx.numpy_helper.from_array(np.array([[1.0], [0.5]]), "w")
    float64 = onnx.TensorProto.DOUBLE
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMul", ["x", "w"], ["y"])], "g",
        [onnx.helper.make_tensor_value_info("x", float64, ["n", 2])],
        [onnx.helper.make_tensor_value_info("y", float64, ["n", 1])], [weight],
    )  # fmt: skip
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    (folder / "strength.onnx").write_bytes(model.SerializeToString())

"""ONNX operators as functions of torch tensors, a family in each file; `table` has them all."""

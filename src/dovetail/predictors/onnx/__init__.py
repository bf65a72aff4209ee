"""ONNX files: read, measured, and evaluated by torch operator by operator."""

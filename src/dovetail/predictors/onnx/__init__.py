"""ONNX files: read, measured and run by torch, operator by operator."""

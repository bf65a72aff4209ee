"""ONNX operators as functions of torch tensors, a family in each file.

A new operator is a function in the file of its family and a line in the dictionary at that file's end; a
new family is a file and a line in `table`.
"""

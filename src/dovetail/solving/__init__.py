"""One solve: `solve` reads the model, relaxes it, runs a method, and packs the result.

Methods search. This package checks the input (options, start), starts the clock, and checks the best solution
once more before it is returned (`job`, `search`, `packing`). A single module decides the status of the result
(`status`).
"""

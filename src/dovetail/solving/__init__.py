"""One solve: `solve` reads the model, looks at the host, lets a method search, and packs what it found.

Methods search; here the input is checked (options, start), the clock is started and the best point checked
once more before it is returned (job, search, packing). One place decides what the answer is called (status).
"""

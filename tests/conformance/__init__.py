"""One shared suite per kind of part, run over all parts of that kind."""

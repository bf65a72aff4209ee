"""One description of a problem, which all methods use."""

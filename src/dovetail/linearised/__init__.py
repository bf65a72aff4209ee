"""Networks replaced by linearisations: trust-region subproblems, descents over them, and their starts."""

"""Networks replaced by their linearisations: trust-region subproblems, descents over them, their starts."""

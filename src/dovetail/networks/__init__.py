"""Networks as programs of operations, and the properties that follow: values, ranges, rounding errors and
graphs."""

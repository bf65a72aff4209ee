"""A reader of .lp files beside HiGHS's own, for one purpose: both must say the same.

HiGHS takes `2 a + 3 a` for 3 a, drops a constant on the left of a row, and reads `nan`. So the text is read
here too, by a narrow grammar (linear rows with one limit, bounds, integers, binaries, a closing `end`); what
is outside the grammar is refused with its line, and what HiGHS made of the file must be what was read here.
"""

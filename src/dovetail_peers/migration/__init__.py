"""Programs of the peers rewritten: imports and solve calls, and a list of the changes that remain to be made
by hand.

The program is not run and nothing is guessed: the meaning of a line follows from its syntax alone.
"""

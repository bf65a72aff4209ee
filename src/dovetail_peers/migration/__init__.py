"""Programs of the peers rewritten: imports and solve calls, and a list of what is left to do by hand.

Nothing is run and nothing of the program is guessed: what a line means is read off its syntax alone.
"""

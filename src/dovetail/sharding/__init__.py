"""Blocks in parts that no process holds all at once: each is stated, priced and checked where it is."""

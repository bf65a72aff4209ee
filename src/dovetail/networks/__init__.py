"""What a network computes: one program of operations, and what follows from it."""

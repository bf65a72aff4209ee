"""Output: the log of a solve, a result as a page, and a page that compares several results."""

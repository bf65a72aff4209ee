"""Predictors tied to models that stay in the tool they were written in."""

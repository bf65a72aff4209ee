"""The words every other part speaks: problems, predictors, answers, and the check every answer passes.

`core` imports nothing else of dovetail; everything else imports `core`.
"""

"""The words every other part speaks: problems, predictors, answers, and the check every answer passes.

Of dovetail `core` imports nothing but `networks`, what a network is; everything else imports `core`.
"""

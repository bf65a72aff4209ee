"""Predictors attached to a model of another tool.

`add_predictor_constr` records the connection (and refuses what cannot work). The model gets no constraint,
and variables only if outputs must be made. Each solve takes a snapshot of the model, so that later changes
count.
"""

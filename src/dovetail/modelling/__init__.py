"""Predictors attached to a model that stays in the tool it was written in.

`add_predictor_constr` only notes what is attached to what (and refuses what cannot work): the owner's model
gets no row, and no variable unless outputs have to be made. Each solve takes a snapshot of the model, so
that whatever was changed since is seen.
"""

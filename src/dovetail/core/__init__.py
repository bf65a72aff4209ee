"""The shared definitions of dovetail: problems, predictors, results, and the check that every solution
passes. `core` imports only `networks`; everything else imports `core`."""

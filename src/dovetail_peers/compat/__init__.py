"""The peers' own names, so that programs written for them run with their imports changed.

`dovetail.compat.gurobi_ml`, `dovetail.compat.pyscipopt_ml` and `dovetail.compat.omlt` have the modules and
names of gurobi-machinelearning, PySCIPOpt-ML and OMLT; each function calls dovetail's own
`add_predictor_constr`. None of the peers need be installed. docs/migration.md lists the differences.
"""

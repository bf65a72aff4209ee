"""The peers' own names, so that programs written for them run with their imports changed.

`dovetail.compat.gurobi_ml`, `dovetail.compat.pyscipopt_ml` and `dovetail.compat.omlt` have the modules and
names of gurobi-machinelearning, PySCIPOpt-ML and OMLT; what is behind each of them is dovetail's own
`add_predictor_constr`. None of the peers need be installed. docs/migration.md has what differs.
"""

"""The peers of dovetail: their names over dovetail's own functions, and `dovetail migrate`.

`compat/` has the names of gurobi-machinelearning, PySCIPOpt-ML and OMLT; programs import it by its public
name, `dovetail.compat`. `migration/` rewrites programs that were written for them. The library imports this
package only for that public name: the table of commands names `dovetail migrate`, which is loaded on use.
"""

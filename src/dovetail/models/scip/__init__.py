"""Models written with PySCIPOpt: the problem as its owner stated it, also when SCIP has transformed it.

Only constraints that say something linear are read. Two calls of PySCIPOpt end the process when they meet
what they do not expect (`getVars` without a problem, `getConsVars` of a special ordered set), and a
variable may outlive its model: what is asked of SCIP here is asked only where it can answer.
"""

from dovetail.models.scip.model import ScipModel

__all__ = ["ScipModel"]

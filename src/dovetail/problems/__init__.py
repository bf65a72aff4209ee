"""The benchmark problems by their public name: `dovetail.problems.water` is `dovetail_study.problems.water`.

The problems are files of the study. No other file of the library imports this one.
"""

from dovetail.public_names import give_public_name
from dovetail_study import problems

give_public_name(__name__, problems)

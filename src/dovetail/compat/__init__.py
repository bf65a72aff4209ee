"""The peers' names by their public name: `dovetail.compat.omlt` is `dovetail_peers.compat.omlt`.

Programs that `dovetail migrate` has rewritten import it. No other file of the library imports this one.
"""

from dovetail.public_names import give_public_name
from dovetail_peers import compat

give_public_name(__name__, compat)

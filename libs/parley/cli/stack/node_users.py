"""The user ids of the workspaces of each toolrunner node: parts of one range, none in two of them.

Theory: workspaces keep their users, so the first user of a node must not depend on the number of
nodes. The range is halved, then quartered, and so on: node 1 begins in the middle, nodes 2 and 3 in
the middle of the halves. More nodes shorten the parts of the others and move none.
"""

from collections.abc import Mapping
from typing import Final

FIRST_USER: Final = "TOOLRUNNER_FIRST_USER"
USERS_MAX: Final = "TOOLRUNNER_USERS_MAX"
#: The range of all nodes, unless the caller sets another one.
FIRST: Final = 20_000
COUNT: Final = 40_000
#: A stack has at most so many nodes.
PARTS_BITS: Final = 6
#: Users below the first one that each node has for itself.
OWN: Final = 2


def users_of_node(caller: Mapping[str, str], number: int, nodes: int) -> dict[str, str]:
    """Return the settings of the users of one node.

    Args:
        caller: The variables of the caller, which may set the range of all nodes.
        number: The node.
        nodes: The number of nodes.
    """
    try:
        first, count = int(caller.get(FIRST_USER) or FIRST), int(caller.get(USERS_MAX) or COUNT)
    except ValueError:
        # Unchanged they reach toolrunner, which refuses them with the reason.
        return {}
    part = count >> PARTS_BITS
    begin = int(f"{number:0{PARTS_BITS}b}"[::-1], 2)
    parts = 1 << (PARTS_BITS - (nodes - 1).bit_length())
    return {FIRST_USER: str(first + begin * part), USERS_MAX: str(parts * part - OWN)}

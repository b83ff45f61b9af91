"""The `parley` command: runs a stack on this machine, looks after it and talks to it.

Nothing is re-exported: `parley --help` must not import what only one command needs.
"""

__all__: list[str] = []

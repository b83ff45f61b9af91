"""The `parley` command: runs and supervises a stack on this machine and calls its API.

Nothing is re-exported: `parley --help` must not import modules that only one command needs.
"""

__all__: list[str] = []

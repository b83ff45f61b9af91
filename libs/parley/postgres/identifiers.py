"""SQL identifiers."""


def quoted(name: str) -> str:
    """Return `name` quoted as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'

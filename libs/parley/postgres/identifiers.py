"""Names inside SQL text."""


def quoted(name: str) -> str:
    """Return `name` as an SQL identifier, whatever characters it holds."""
    return '"' + name.replace('"', '""') + '"'

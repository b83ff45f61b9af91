"""Words of a text, with a bug for the demo to repair."""


def longest(text: str) -> str:
    """Return the longest word, the first of them if several are as long."""
    return sorted(text.split(), key=len)[-1]

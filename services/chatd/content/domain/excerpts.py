"""Excerpts of long texts: the beginning and the end."""

LEFT_OUT = "\n[...]\n"


def excerpt(text: str, characters_max: int) -> str:
    """Return at most that many characters: two thirds from the head, one from the tail."""
    if len(text) <= characters_max:
        return text
    kept = characters_max - len(LEFT_OUT)
    if kept <= 1:
        return text[:characters_max]
    tail = kept // 3
    return f"{text[: kept - tail]}{LEFT_OUT}{text[len(text) - tail :]}"

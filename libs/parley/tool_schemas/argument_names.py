"""Names of arguments: those that a provider refuses are replaced."""

import hashlib
import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import count
from typing import Final

import msgspec

NAME_CHARACTERS_MAX: Final = 64
HASH_CHARACTERS: Final = 8
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_.-]")


def safe_names(names: Iterable[str]) -> dict[str, str]:
    """Return the name under which a provider accepts each argument of an object."""
    every = list(names)
    taken = {name for name in every if _is_safe(name)}
    safe = {}
    for name in every:
        given = name
        if not _is_safe(name):
            given = _FOREIGN.sub("_", name) or "_"
            if len(given) > NAME_CHARACTERS_MAX or given in taken:
                hashed = (_hashed(name, given, attempt) for attempt in count())
                given = next(each for each in hashed if each not in taken)
            taken.add(given)
        safe[name] = given
    return safe


@lru_cache(maxsize=1024)
def has_unsafe_names(input_schema_json: bytes) -> bool:
    """Return whether a schema has names that are replaced."""
    try:
        schema = msgspec.json.decode(input_schema_json or b"{}")
    except (ValueError, RecursionError):
        return False
    waiting = [schema]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            properties = value.get("properties")
            if isinstance(properties, dict) and not all(map(_is_safe, properties)):
                return True
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return False


def _is_safe(name: str) -> bool:
    return 0 < len(name) <= NAME_CHARACTERS_MAX and _FOREIGN.search(name) is None


def _hashed(name: str, given: str, attempt: int) -> str:
    """Return another name for each attempt; the same for the same name."""
    text = f"{name}{attempt or ''}".encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(text).hexdigest()
    room = NAME_CHARACTERS_MAX - HASH_CHARACTERS - 1
    return f"{given[:room]}_{digest[:HASH_CHARACTERS]}"

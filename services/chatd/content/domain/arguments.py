"""Arguments of tool calls: what may be kept of them and sent on, and what may not."""

import json
import re
from collections import Counter
from collections.abc import Callable

# Executors take messages of 4 MiB, and a history keeps what it is given.
ARGUMENTS_BYTES_MAX = 2 * 1024 * 1024
ARGUMENTS_DEPTH_MAX = 100

_TEXT_OR_LAST_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])', re.DOTALL)
_ESCAPED = str.maketrans({"\n": "\\n", "\r": "\\r", "\t": "\\t"})


class Arguments(dict[str, object]):
    """A JSON object whose names are all different."""

    @classmethod
    def of(cls, pairs: list[tuple[str, object]]) -> "Arguments":
        """Make an object of its members."""
        made = cls(pairs)
        if len(made) < len(pairs):
            twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
            raise _Unusable(f"an object of the arguments names {twice[:64]!r} twice")
        return made

    def has_case_variants(self) -> bool:
        """Return whether two names differ only in case."""
        return len({name.casefold() for name in self}) < len(self)


def parsed(args_json: str) -> Arguments:
    """Return the arguments of a call; none given is an empty object.

    Raises:
        ValueError: they cannot be used; says why to whoever made the call.
    """
    if not args_json.strip():
        return Arguments()
    try:
        value = _loaded(args_json, Arguments.of)
    except _Unusable:
        raise
    except (ValueError, RecursionError) as error:
        value = _loaded_mended(args_json, error)
    if not isinstance(value, Arguments):
        raise ValueError("the arguments must be a JSON object")
    return value


def _loaded_mended(args_json: str, error: Exception) -> object:
    try:
        return _loaded(mended(args_json), Arguments.of)
    except _Unusable:
        raise
    except (ValueError, RecursionError):
        raise ValueError(f"the arguments are not valid JSON: {error}") from None


def mended(args_json: str) -> str:
    """Return arguments without the slips that leave no doubt of what was meant.

    These are a comma behind the last member, and line breaks and tabs that stand in a text as they
    are. Whether JSON comes of it is another question.
    """
    return _TEXT_OR_LAST_COMMA.sub(_mended_place, args_json)


def _mended_place(found: re.Match[str]) -> str:
    text = found[0]
    return "" if text == "," else text.translate(_ESCAPED)


def is_kept(args_json: str) -> bool:
    """Return whether arguments are JSON of a size and a depth that a history can hold."""
    try:
        _loaded(args_json, dict)
    except (ValueError, RecursionError):
        return False
    return True


class _Unusable(ValueError):
    """The arguments are JSON, but nothing that anybody would read or could be sure of."""


def _loaded(args_json: str, to_object: Callable[[list[tuple[str, object]]], object]) -> object:
    if len(args_json.encode(errors="replace")) > ARGUMENTS_BYTES_MAX:
        size = f"{ARGUMENTS_BYTES_MAX // 2**20} MiB"
        raise _Unusable(f"the arguments are larger than {size}; do less with one call")
    value: object = json.loads(
        args_json, object_pairs_hook=to_object, parse_constant=_refuse_constant
    )
    if _is_deeper(value, ARGUMENTS_DEPTH_MAX):
        raise _Unusable(f"the arguments are nested more than {ARGUMENTS_DEPTH_MAX} levels deep")
    return value


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


def _is_deeper(value: object, depth_max: int) -> bool:
    level = [value]
    for _ in range(depth_max):
        level = [child for each in level for child in _children(each)]
        if not level:
            return False
    return True


def _children(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []

"""Arguments of tool calls: parsing, limits and repair."""

import json
import re
from collections import Counter
from collections.abc import Callable

# Executors accept messages of 4 MiB, and arguments are stored in the history.
ARGUMENTS_BYTES_MAX = 2 * 1024 * 1024
ARGUMENTS_DEPTH_MAX = 100

_TEXT_OR_LAST_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])', re.DOTALL)
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_ESCAPED = str.maketrans({"\n": "\\n", "\r": "\\r", "\t": "\\t"})


class Arguments(dict[str, object]):
    """A JSON object whose member names are unique."""

    @classmethod
    def of(cls, pairs: list[tuple[str, object]]) -> "Arguments":
        """Build an object from its members."""
        made = cls(pairs)
        if len(made) < len(pairs):
            twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
            raise _Unusable(f"an object of the arguments names {twice[:64]!r} twice")
        return made

    def has_case_variants(self) -> bool:
        """Return whether two names differ only in case."""
        return len({name.casefold() for name in self}) < len(self)


def parsed(args_json: str) -> Arguments:
    """Return the arguments of a call; empty text is an empty object.

    Raises:
        ValueError: they cannot be used; the message says why and is returned to the model.
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
    if _ESCAPED_SURROGATE.search(args_json):
        _refuse_broken_text(value)
    return value


def _loaded_mended(args_json: str, error: Exception) -> object:
    try:
        return _loaded(mended(args_json), Arguments.of)
    except _Unusable:
        raise
    except (ValueError, RecursionError):
        raise ValueError(f"the arguments are not valid JSON: {error}") from None


def mended(args_json: str) -> str:
    """Return arguments with unambiguous syntax errors corrected.

    These are a comma after the last member, and unescaped line breaks and tabs within a string. The
    result may still be invalid JSON.
    """
    return _TEXT_OR_LAST_COMMA.sub(_mended_place, args_json)


def _mended_place(found: re.Match[str]) -> str:
    text = found[0]
    return "" if text == "," else text.translate(_ESCAPED)


def is_kept(args_json: str) -> bool:
    """Return whether arguments are JSON within the size and depth limits of a history."""
    try:
        _loaded(args_json, dict)
    except (ValueError, RecursionError):
        return False
    return True


class _Unusable(ValueError):
    """The arguments are valid JSON, but ambiguous or not usable."""


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


def _refuse_broken_text(value: Arguments) -> None:
    """Reject unpaired surrogates, which cannot be stored or sent."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _Unusable(
            "an argument holds half of a character; "
            "write characters as they are, not as \\u escapes"
        ) from None


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

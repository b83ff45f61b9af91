"""Commands of bash that evaluate their arguments: names with an index, and variables they set."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from chatd.approvals.domain.shell_variables import UNKNOWN, is_evaluated
from chatd.approvals.domain.shell_words import NAME, Word

#: Without integers, arrays and references, whose values bash evaluates.
_DECLARE_OPTION: Final = re.compile(r"[-+][fFglprtux]+")
_READ_FLAGS: Final = re.compile(r"-[rs]+|-[rs]*[nNtu][0-9.]+")
_READ_VALUED: Final = re.compile(r"-[rs]*[dinNptu]")
_KEYWORD: Final = re.compile(r"-[A-Za-z]*[kH][A-Za-z]*|keyword|hist\w*")
_HASH_OPTION: Final = re.compile(r"-[dlrt]+")


def assignments_in(words: Sequence[Word]) -> Iterator[str]:
    """Yield the assignments in the arguments of `export` and the like, and of what sets others."""
    name = words[0].text
    if name not in _READERS:
        return
    for word in words[1:]:
        text = word.text if word.is_literal else f"{word.text or word.prefix}{UNKNOWN}"
        if name in _DECLARING and "=" in text:
            yield text
        elif name in _SETTING and NAME.fullmatch(word.text):
            yield f"{word.text}={UNKNOWN}"
        elif name == "printf" and words[1].text.startswith("-v"):
            yield f"{words[1].text[2:] or word.text}={UNKNOWN}"


def may_run_anything(words: Sequence[Word]) -> bool:
    """Return whether bash may evaluate an argument in which a substitution may be."""
    name = words[0].text
    if name not in _READERS:
        return False
    is_indexed = name not in _PRINTING and any(is_evaluated(word.text) for word in words)
    return is_indexed or _READERS[name](words[1:])


def _in_declare(words: Sequence[Word]) -> bool:
    for word in words:
        text = word.text or word.prefix
        if text.startswith(("-", "+")):
            if not _DECLARE_OPTION.fullmatch(word.text):
                return True
            continue
        name, has_value, value = text.partition("=")
        if not NAME.fullmatch(name) or (not has_value and not word.is_literal):
            return True
        if value.startswith("(") and not word.is_literal:
            return True
        if value.startswith("(") and any(each in value for each in "$`"):
            return True
    return False


def _in_read(words: Sequence[Word]) -> bool:
    at = 0
    while at < len(words):
        text = words[at].text
        if not words[at].is_literal:
            return True
        if _READ_VALUED.fullmatch(text):
            at += 1
        elif not (_READ_FLAGS.fullmatch(text) or NAME.fullmatch(text) or text == "--"):
            return True
        at += 1
    return False


def _in_unset(words: Sequence[Word]) -> bool:
    return not all(
        word.is_literal and (NAME.fullmatch(word.text) or word.text in ("-f", "-v", "--"))
        for word in words
    )


def _in_test(words: Sequence[Word]) -> bool:
    """Return whether `-v` has an operand that is not known, or may be such a word itself."""
    return any(
        not after.is_literal and (not word.is_literal or word.text in ("-v", "-R"))
        for word, after in pairwise(words)
    )


def _in_printf(words: Sequence[Word]) -> bool:
    if not words or not words[0].text.startswith("-v"):
        return False
    name = words[0].text[2:] or next((word.text for word in words[1:2]), "")
    return not NAME.fullmatch(name)


def _in_getopts(words: Sequence[Word]) -> bool:
    return len(words) < 2 or not NAME.fullmatch(words[1].text)


def _in_wait(words: Sequence[Word]) -> bool:
    return any(word.text.startswith("-") and word.text not in ("-n", "-f") for word in words)


def _in_hash(words: Sequence[Word]) -> bool:
    return any(
        not word.is_literal or (word.text[:1] == "-" and not _HASH_OPTION.fullmatch(word.text))
        for word in words
    )


def _in_set(words: Sequence[Word]) -> bool:
    """Return whether later words may be more than they are: `set -k`, expansions of history."""
    for word in words:
        if word.text == "--" or not (word.text or word.prefix):
            return False
        if _KEYWORD.fullmatch(word.text):
            return True
    return False


_DECLARING: Final = frozenset(("declare", "export", "local", "readonly", "typeset"))
#: They keep their arguments for programs that run later.
KEEPING: Final = frozenset((*_DECLARING, "set"))
_PRINTING: Final = frozenset(("hash", "printf", "set"))
_SETTING: Final = frozenset(("getopts", "read"))
_READERS: Final[Mapping[str, Callable[[Sequence[Word]], bool]]] = {
    **dict.fromkeys(_DECLARING, _in_declare),
    **dict.fromkeys(("test", "["), _in_test),
    "getopts": _in_getopts,
    "hash": _in_hash,
    "printf": _in_printf,
    "read": _in_read,
    "set": _in_set,
    "unset": _in_unset,
    "wait": _in_wait,
}

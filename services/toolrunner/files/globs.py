"""Patterns for names, as in `src/**/*.py`, turned into regular expressions."""

import re
from typing import Final

_SPECIAL: Final = re.compile(r"(\*\*/|/\*\*$|\*\*|\*|\?|\[!?\]?[^\]/]*\]|\{|\}|,|\\.)", re.S)


def compiled(pattern: str, *, has_braces: bool = True) -> re.Pattern[str]:
    """Return what matches a whole path as the pattern does.

    Raises:
        re.error: The pattern cannot be read.
    """
    return re.compile(_translated(pattern, has_braces=has_braces), re.S)


def name_pattern(pattern: str) -> re.Pattern[str]:
    """Return what matches a path relative to a directory; without a slash at any depth.

    Raises:
        re.error: The pattern cannot be read.
    """
    plain = pattern.removeprefix("./")
    anchored = plain.lstrip("/")
    return compiled(anchored if "/" in plain else f"**/{anchored}")


def _translated(pattern: str, *, has_braces: bool) -> str:
    depth, out, at = 0, [], 0
    for found in _SPECIAL.finditer(pattern):
        out.append(re.escape(pattern[at : found.start()]))
        at = found.end()
        token = found.group()
        match token:
            case "**/":
                out.append("(?:.*/)?")
            case "/**":
                out.append("/.*")
            case "**":
                out.append(".*")
            case "*":
                out.append("[^/]*")
            case "?":
                out.append("[^/]")
            case "{" if has_braces:
                depth += 1
                out.append("(?:")
            case "}" if depth:
                depth -= 1
                out.append(")")
            case "," if depth:
                out.append("|")
            case _ if token.startswith("["):
                out.append(_set(token))
            case _ if token.startswith("\\"):
                out.append(re.escape(token[1:]))
            case _:
                out.append(re.escape(token))
    return "".join([*out, re.escape(pattern[at:]), ")" * depth])


def _set(token: str) -> str:
    body = token[1:-1].replace("\\", "\\\\").replace("[", "\\[")
    if body.startswith("!"):
        return f"[^/{body[1:]}]" if body != "!" else re.escape(token)
    return f"[{body}]" if body else re.escape(token)

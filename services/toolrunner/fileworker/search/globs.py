"""Glob patterns, as in `src/**/*.py`, translated to regular expressions.

Theory: a star that is followed by more stars may take the shortest match to the next part and never
backtrack, since the next star reaches everything from there that it reaches from further on. That
holds among stars within a name, and among those that cross directories with everything between
them; so only the last of each kind ever backtracks, however many there are. Braces are expanded
first, because alternatives of different lengths would break this property.
"""

import re
from typing import Final

ALTERNATIVES_MAX: Final = 256

_SPECIAL: Final = re.compile(r"(\*\*/|\*\*|\*|\?|\[!?\]?[^\]/]*\]|\{|\}|,|\\.)", re.S)
_STAR: Final = "*"
_ANY: Final = "**"
_DEEP: Final = "**/"
_WILD: Final = (_STAR, _ANY, _DEEP)

#: Each token is one of the wildcards, or a regular expression of a fixed length.
_Tokens = tuple[str, ...]


def compiled(pattern: str, *, has_braces: bool = True) -> re.Pattern[str]:
    """Return an expression that matches a whole path like the pattern.

    Raises:
        re.error: The pattern cannot be parsed, or its braces expand to too many patterns.
    """
    alternatives = _alternatives(pattern, has_braces=has_braces)
    return re.compile("|".join(_translated(_collapsed(each)) for each in alternatives), re.S)


def name_pattern(pattern: str) -> re.Pattern[str]:
    """Return an expression for a path relative to a directory; without a slash at any depth.

    Raises:
        re.error: The pattern cannot be parsed, or its braces expand to too many patterns.
    """
    plain = pattern.removeprefix("./")
    anchored = plain.lstrip("/")
    return compiled(anchored if "/" in plain else f"**/{anchored}")


def _alternatives(pattern: str, *, has_braces: bool) -> list[_Tokens]:
    """Return the tokens of a pattern, once for each expansion of its braces."""
    opened: list[tuple[list[_Tokens], list[_Tokens]]] = []  # The part before, and its alternatives.
    current: list[_Tokens] = [()]
    at = 0
    for found in _SPECIAL.finditer(pattern):
        between, at = re.escape(pattern[at : found.start()]), found.end()
        current = _followed(current, [(between,) if between else ()])
        match found.group():
            case "{" if has_braces:
                opened.append((current, []))
                current = [()]
            case "}" if opened:
                before, choices = opened.pop()
                current = _followed(before, [*choices, *current])
            case "," if opened:
                opened[-1][1].extend(current)
                current = [()]
            case token:
                current = _followed(current, [(_token(token),)])
    current = _followed(current, [(re.escape(pattern[at:]),)])
    while opened:
        before, choices = opened.pop()
        current = _followed(before, [*choices, *current])
    return current


def _followed(before: list[_Tokens], after: list[_Tokens]) -> list[_Tokens]:
    if len(before) * len(after) > ALTERNATIVES_MAX:
        raise re.error(f"the braces make more than {ALTERNATIVES_MAX} patterns")
    return [first + second for first in before for second in after]


def _token(token: str) -> str:
    if token in _WILD:
        return token
    if token == "?":
        return "[^/]"
    if token.startswith("["):
        return _set(token)
    return re.escape(token[1:] if token.startswith("\\") else token)


def _set(token: str) -> str:
    body = token[1:-1].replace("\\", "\\\\").replace("[", "\\[")
    if body.startswith("!"):
        return f"[^/{body[1:]}]" if body != "!" else re.escape(token)
    # A range may include the slash, which no set matches.
    return f"(?!/)[{body}]" if body else re.escape(token)


def _collapsed(tokens: _Tokens) -> list[str]:
    """Merge adjacent wildcards."""
    out: list[str] = []
    for token in filter(None, tokens):
        last = out[-1] if out else "/"
        match token:
            case "**/" if last == _DEEP:
                pass
            case "**/" if not last.endswith("/"):
                # Only at the beginning of a name it may match nothing.
                _reach(out)
                out.append("/")
            case "**":
                _reach(out)
            case "*" if last in (_STAR, _ANY):
                pass
            case _:
                out.append(token)
    return out


def _reach(out: list[str]) -> None:
    while out and out[-1] in _WILD:
        out.pop()
    out.append(_ANY)


def _translated(tokens: list[str]) -> str:
    units: list[list[str]] = [[]]
    for token in tokens:
        if token in (_ANY, _DEEP):
            units.append([])
        units[-1].append(token)
    *first, last = units
    return "".join(f"(?>{_unit(unit, is_last=False)})" for unit in first) + _unit(
        last, is_last=True
    )


def _unit(tokens: list[str], *, is_last: bool) -> str:
    """Return the expression for a wildcard that crosses directories and the part after it."""
    stretches = [""]
    for token in tokens:
        match token:
            case "**":
                stretches[-1] += ".*" if is_last else ".*?"
            case "**/":
                stretches[-1] += "(?:.*/)?" if is_last else "(?:.*?/)??"
            case "*":
                stretches.append("")
            case _:
                stretches[-1] += token
    head, *starred = stretches
    if not starred:
        return head
    *short, final = starred
    if not is_last:
        short, final = starred, ""
    body = "".join(f"(?>[^/]*?{stretch})" for stretch in short)
    return f"{head}{body}[^/]*{final}" if is_last else head + body

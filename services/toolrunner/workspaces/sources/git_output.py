"""Sanitised output of the node's git: without private addresses and paths of the node."""

import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final

from toolrunner.workspaces.sources.remotes import is_public

PRIVATE: Final = "(a private address)"
#: Matches possible IPv4 and IPv6 addresses; they are parsed afterwards.
_CANDIDATE: Final = re.compile(
    r"(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}(?!\.?\d)|[0-9A-Fa-f]*:[0-9A-Fa-f:.]+)"
)
_RULE: Final = re.compile(r"url\.(.+)\.insteadof", re.IGNORECASE)


def told(line: str, names: Mapping[str, str], asked_host: str = "") -> str:
    """Return a line without addresses that are not public, except the requested host.

    Args:
        line: The printed line.
        names: Replacements for some texts, the longest first.
        asked_host: The host as the user named it.
    """
    for text in sorted(names, key=len, reverse=True):
        line = line.replace(text, names[text])
    return _CANDIDATE.sub(lambda found: _shown(found[0], asked_host), line)


def led_names(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the original URLs of repositories that git accesses by a rewritten URL."""
    names: dict[str, str] = {}
    for name, value in variables.items():
        rule = _RULE.fullmatch(value) if name.startswith("GIT_CONFIG_KEY_") else None
        if rule is not None:
            names[rule[1]] = variables.get(name.replace("_KEY_", "_VALUE_"), "")
    return names


def _shown(text: str, asked_host: str) -> str:
    address = text.rstrip(".:")
    try:
        ip_address(address)
    except ValueError:
        return text
    if address == asked_host or is_public(address):
        return text
    return PRIVATE + text[len(address) :]

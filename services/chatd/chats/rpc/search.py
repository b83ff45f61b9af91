"""The query language of chat lists: `key:value`, with quotes around values with spaces."""

import re
from dataclasses import replace

from chatd.chats.store.listing import Filter, Source
from chatd.primitives.domain.errors import InvalidRequest

KEYS = ("archived", "has_unread", "search", "source", "title")

# A key, a colon, and a value that may be quoted; a quote inside is doubled.
_TERM = re.compile(r'\s*(?P<key>[a-z_]+):(?:"(?P<quoted>(?:[^"]|"")*)"|(?P<plain>[^\s"]+))(?=\s|$)')
_FLAGS = {"true": True, "false": False}


def searched(query: str, among: Filter) -> Filter:
    """Return a filter narrowed by a query.

    Raises:
        InvalidRequest: The query cannot be parsed, or has an unknown key.
    """
    given: dict[str, str] = {}
    rest = query.rstrip()
    while rest:
        term = _TERM.match(rest)
        if term is None and rest.count('"') % 2:
            raise InvalidRequest("query", 'has a quote that is not closed; end the value with "')
        if term is None:
            raise InvalidRequest(
                "query", f'cannot be read at "{rest.strip()[:40]}"; write key:value'
            )
        key, quoted = term["key"], term["quoted"]
        if key not in KEYS:
            raise InvalidRequest("query", f"has no key {key}; there are {', '.join(KEYS)}")
        if key in given:
            raise InvalidRequest("query", f"names {key} twice")
        given[key] = term["plain"] if quoted is None else quoted.replace('""', '"')
        rest = rest[term.end() :]
    for key, value in given.items():
        among = _narrowed(among, key, value)
    return among


def _narrowed(among: Filter, key: str, value: str) -> Filter:
    match key:
        case "title":
            return replace(among, title=value)
        case "search":
            return replace(among, search=value)
        case "source":
            if value not in set(Source):
                raise InvalidRequest("query", f"source is one of {', '.join(Source)}")
            return replace(among, source=Source(value))
        case "archived":
            return replace(among, archived=_flag(key, value))
        case _:
            return replace(among, has_unread=_flag(key, value))


def _flag(key: str, value: str) -> bool:
    if value not in _FLAGS:
        raise InvalidRequest("query", f"{key} is true or false")
    return _FLAGS[value]

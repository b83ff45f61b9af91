"""Lists in pages: what a request asks for, and how a page is shown."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gateway.bodies import invalid_parameter, whole_number
from gateway.convert_parts import Json

LIMIT_MAX = 200
CURSOR_CHARACTERS_MAX = 1024


@dataclass(frozen=True, slots=True)
class PageRequest:
    """The page that is asked for; 0 takes the usual size."""

    page_size: int
    page_token: str


def page_request(query: Mapping[str, str]) -> PageRequest:
    """Return the page that `limit` and `cursor` ask for.

    Raises:
        HttpRefusal: They cannot be (422).
    """
    cursor = query.get("cursor", "")
    if len(cursor) > CURSOR_CHARACTERS_MAX or not (cursor.isascii() and cursor.isprintable()):
        raise invalid_parameter("cursor", "Give next_cursor of the page before.")
    return PageRequest(whole_number(query, "limit", least=1, most=LIMIT_MAX) or 0, cursor)


def page_to_json(items: Iterable[Json], next_page_token: str) -> Json:
    """Return a page; the cursor is null on the last one."""
    return {"items": list(items), "next_cursor": next_page_token or None}

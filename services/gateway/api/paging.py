"""Pagination: the page of a request, and the JSON of a page."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gateway.api.convert.parts import Json
from gateway.http.problems.errors import FieldError, HttpProblem, invalid_request
from gateway.http.request_body import int_parameter

LIMIT_MAX = 200
CURSOR_CHARACTERS_MAX = 1024


@dataclass(frozen=True, slots=True)
class PageRequest:
    """The requested page; a size of 0 means the default."""

    page_size: int
    page_token: str


def page_request(query: Mapping[str, str]) -> PageRequest:
    """Return the page that `limit` and `cursor` request.

    Raises:
        HttpProblem: They are invalid (422).
    """
    cursor = query.get("cursor", "")
    faults: list[FieldError] = []
    if len(cursor) > CURSOR_CHARACTERS_MAX or not (cursor.isascii() and cursor.isprintable()):
        detail = "Give next_cursor of the page before."
        faults.append(FieldError("INVALID", detail, parameter="cursor"))
    try:
        page_size = int_parameter(query, "limit", least=1, most=LIMIT_MAX) or 0
    except HttpProblem as refusal:
        raise invalid_request(*refusal.errors, *faults) from None
    if faults:
        raise invalid_request(*faults)
    return PageRequest(page_size, cursor)


def page_to_json(items: Iterable[Json], next_page_token: str) -> Json:
    """Return the JSON of a page; the cursor is null on the last one."""
    return {"items": list(items), "next_cursor": next_page_token or None}

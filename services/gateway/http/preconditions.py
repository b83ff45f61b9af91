"""Entity tags: If-None-Match for reads and If-Match for changes."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import sha256
from typing import TypeVar
from uuid import NAMESPACE_OID, uuid5

from starlette.requests import Request
from starlette.responses import Response

from gateway.http.problems.errors import FieldError, HttpProblem, UpstreamProblem, invalid_request
from gateway.http.responses import json_response
from gateway.identity.errors import VersionConflict
from parley.contract.errors import error_spec

# A version that no resource has: an invalid tag matches nothing.
NO_VERSION = -1
# A number with so many digits fits into 64 bits.
VERSION_DIGITS_MAX = 18
VERSION_CONFLICT = "VERSION_CONFLICT"
# Reasons with which a change is refused because of its condition.
CONFLICTS = frozenset({VERSION_CONFLICT, "FILE_CHANGED"})
# Enough characters of a hash to exclude collisions.
TAG_CHARACTERS = 32
VERSION_SEPARATOR = "."

# Each tag of a condition may be a call.
TAGS_MAX = 10

T = TypeVar("T")

_TAG = re.compile(r'(?:W/)?"([!#-~]{1,128})"')
# Empty elements of a list count for nothing. Each repetition ends with a tag, so that there is one
# way to match a run of commas, and time grows linearly.
_TAGS = re.compile(rf"[ \t,]*{_TAG.pattern}(?:[ \t]*,[ \t,]*{_TAG.pattern})*[ \t,]*")


def if_match(request: Request) -> tuple[str, ...]:
    """Return the tags of If-Match, of which one has to match; empty for an unconditional change.

    Raises:
        HttpProblem: It is not a list of tags or too long a one (422), or all of them are weak, and
            weak tags never match (412).
    """
    text = _condition_of(request)
    if text == "*":
        return ()
    found = list(_TAG.finditer(text)) if _TAGS.fullmatch(text) else []
    if not 0 < len(found) <= TAGS_MAX:
        detail = f"Give the ETag of what was read in its quotes, at most {TAGS_MAX} of them, or *."
        raise invalid_request(FieldError("INVALID", detail, parameter="If-Match"))
    strong = tuple(dict.fromkeys(each[1] for each in found if not each[0].startswith("W/")))
    if not strong:
        raise _changed_meanwhile()
    return strong


def version_in(tag: str) -> str:
    """Return the version part of a document's tag; a plain version is returned unchanged."""
    # A tag without a version must match nothing, not any version.
    return tag.partition(VERSION_SEPARATOR)[0] or tag


def expected_version(tag: str) -> int:
    """Return the version of a tag of the gateway's own resources; 0 without a tag."""
    if not tag:
        return 0
    is_version = tag.isascii() and tag.isdigit() and len(tag) <= VERSION_DIGITS_MAX
    return int(tag) if is_version else NO_VERSION


def refuse_condition(request: Request) -> None:
    """Reject If-Match on a resource without a version instead of ignoring it.

    Raises:
        HttpProblem: There is a condition (422).
    """
    if _condition_of(request) != "*":
        detail = "This cannot be changed on a condition; leave the header out."
        raise invalid_request(FieldError("INVALID", detail, parameter="If-Match"))


async def changed_if(tags: Sequence[str], change: Callable[[str], Awaitable[T]]) -> T:
    """Make a change if one of the tags matches, or without a condition if there are none.

    A service compares one tag, so they are tried one after the other: a change whose tag does not
    match changes nothing, and a version never comes back.

    Raises:
        HttpProblem: No tag matches (412).
    """
    if not tags:
        return await change("")
    for tag in tags:
        try:
            return await change(tag)
        except (UpstreamProblem, VersionConflict) as error:
            if not _is_conflict(error):
                raise
    raise _changed_meanwhile()


def request_id_for(tag: str, tags: Sequence[str], request_id: str) -> str:
    """Return the request id of the change that is tried with one of several tags.

    Each has its own, so that a repetition of the request gets the outcome of each.
    """
    if tag in ("", *tags[:1]):
        return request_id
    return str(uuid5(NAMESPACE_OID, f"{request_id} {tag}"))


def tagged(tag: str) -> Mapping[str, str]:
    """Return the ETag header; empty for a resource without a version."""
    return {"etag": f'"{tag}"'} if tag else {}


def tagged_response(request: Request, document: object, tag: str) -> Response:
    """Return a document with its tag, or 304 if the client has it."""
    headers = tagged(tag)
    if is_known(request, tag):
        return Response(status_code=304, headers=headers)
    return json_response(document, headers=headers)


def hashed_response(request: Request, document: object, *, version: str = "") -> Response:
    """Return a document with a tag from its content, or 304 if the client has it.

    The document may contain data that is not covered by the version, such as data of other users:
    it changes the tag, but does not conflict with changes. `version_in` extracts the version from
    the tag.
    """
    response = json_response(document)
    tag = sha256(response.body).hexdigest()[:TAG_CHARACTERS]
    if version:
        tag = f"{version}{VERSION_SEPARATOR}{tag}"
    if is_known(request, tag):
        return Response(status_code=304, headers=tagged(tag))
    response.headers.update(tagged(tag))
    return response


def is_known(request: Request, tag: str) -> bool:
    """Return whether If-None-Match contains this tag."""
    known = request.headers.get("if-none-match", "").strip()
    tags = [found[1] for found in _TAG.finditer(known)]
    return bool(tag) and (known == "*" or tag in tags)


def _condition_of(request: Request) -> str:
    """Return If-Match, whose lines are one list; `*` without one."""
    lines = request.headers.getlist("if-match")
    return ",".join(lines).strip() if lines else "*"


def _is_conflict(error: UpstreamProblem | VersionConflict) -> bool:
    if isinstance(error, VersionConflict):
        return True
    # A tag that was never a version matches none.
    is_no_tag = any(each.field.endswith(".etag") for each in error.problem.violations)
    return error.problem.reason in CONFLICTS or is_no_tag


def _changed_meanwhile() -> HttpProblem:
    status = error_spec(VERSION_CONFLICT).if_match_http_status
    detail = "Somebody changed it meanwhile; read it and try again."
    return HttpProblem(status, VERSION_CONFLICT, detail)

"""Entity tags: If-None-Match for reads and If-Match for changes."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256

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

_TAG = re.compile(r'(?:W/)?"([!#-~]{1,128})"')


def if_match(request: Request) -> str:
    """Return the tag of If-Match; empty when the change is unconditional.

    Raises:
        HttpProblem: It is not a single tag (422), or a weak one, which never matches (412).
    """
    text = request.headers.get("if-match", "*").strip()
    if text == "*":
        return ""
    found = _TAG.fullmatch(text)
    if found is None:
        detail = "Give the one ETag of what was read, in its quotes, or *."
        raise invalid_request(FieldError("INVALID", detail, parameter="If-Match"))
    if text.startswith("W/"):
        raise _changed_meanwhile()
    return found[1]


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
    if request.headers.get("if-match", "*").strip() != "*":
        detail = "This cannot be changed on a condition; leave the header out."
        raise invalid_request(FieldError("INVALID", detail, parameter="If-Match"))


@contextmanager
def conditional(tag: str) -> Iterator[None]:
    """Convert a version conflict to 412, if there was a condition.

    Raises:
        HttpProblem: The code inside found another version than `tag` (412).
    """
    try:
        yield
    except (UpstreamProblem, VersionConflict) as error:
        if tag and _is_conflict(error):
            raise _changed_meanwhile() from error
        raise


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

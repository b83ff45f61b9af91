"""Entity tags: what a reader has already, and what a change was made from."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256

from starlette.requests import Request
from starlette.responses import Response

from gateway.http.problems.errors import FieldError, HttpProblem, UpstreamProblem, invalid_request
from gateway.http.responses import json_response
from gateway.identity.errors import VersionConflict

# A version that nothing ever has: a tag that is not ours matches nothing.
NO_VERSION = -1
# As much of a hash as nobody finds twice.
TAG_CHARACTERS = 32
VERSION_SEPARATOR = "."

_TAG = re.compile(r'(?:W/)?"([!#-~]{1,128})"')


def if_match(request: Request) -> str:
    """Return the tag that a change was made from; empty when it may replace any.

    Raises:
        HttpProblem: It is not one tag (422), or a weak one, which never matches (412).
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
    """Return the version that a document was tagged with; a bare version is one already."""
    # A tag without a version asks for one that nothing has, not for any.
    return tag.partition(VERSION_SEPARATOR)[0] or tag


def expected_version(tag: str) -> int:
    """Return the version that a tag of the gateway's own stands for; 0 when there is no tag."""
    if not tag:
        return 0
    return int(tag) if tag.isdigit() else NO_VERSION


def refuse_condition(request: Request) -> None:
    """Refuse a condition on what has no version, rather than overlook it.

    Raises:
        HttpProblem: There is one that could fail (422).
    """
    if request.headers.get("if-match", "*").strip() != "*":
        detail = "This cannot be changed on a condition; leave the header out."
        raise invalid_request(FieldError("INVALID", detail, parameter="If-Match"))


@contextmanager
def conditional(tag: str) -> Iterator[None]:
    """Tell a conflict as a condition that failed, if there was a condition.

    Raises:
        HttpProblem: What is inside met another version than `tag` (412).
    """
    try:
        yield
    except (UpstreamProblem, VersionConflict) as error:
        if tag and _is_conflict(error):
            raise _changed_meanwhile() from error
        raise


def tagged(tag: str) -> Mapping[str, str]:
    """Return the header that tells a version; none for what has none."""
    return {"etag": f'"{tag}"'} if tag else {}


def tagged_response(request: Request, document: object, tag: str) -> Response:
    """Return a document with its tag, or that the reader has it already (304)."""
    headers = tagged(tag)
    if is_known(request, tag):
        return Response(status_code=304, headers=headers)
    return json_response(document, headers=headers)


def hashed_response(request: Request, document: object, *, version: str = "") -> Response:
    """Return a document tagged by what it says, or that the reader has it.

    It may say more than what has a version, such as what others did near it: that makes another
    document, but changes of it do not meet. `version_in` takes the version out of such a tag.
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
    """Tell whether the reader has what has this tag."""
    known = request.headers.get("if-none-match", "").strip()
    tags = [found[1] for found in _TAG.finditer(known)]
    return bool(tag) and (known == "*" or tag in tags)


def _is_conflict(error: UpstreamProblem | VersionConflict) -> bool:
    if isinstance(error, VersionConflict):
        return True
    # A tag that no version ever had matches none.
    is_no_tag = any(each.field.endswith(".etag") for each in error.problem.violations)
    return error.problem.reason == "VERSION_CONFLICT" or is_no_tag


def _changed_meanwhile() -> HttpProblem:
    return HttpProblem(
        412, "VERSION_CONFLICT", "Somebody changed it meanwhile; read it and try again."
    )

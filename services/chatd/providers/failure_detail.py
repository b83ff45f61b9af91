"""Extracts the text of a failure that is safe to show, without secrets and markup."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from chatd.providers.wire import Failure
from parley.telemetry import Redactor

DETAIL_CHARACTERS_MAX = 500
# A longer line is no sentence.
LINE_CHARACTERS_MAX = 2000
BODY_BYTES_MAX = 64 * 1024

_URL = re.compile(r"\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s\"'<>]+")
# SDKs put the call before the provider's text.
_CALL = re.compile(r"^(?:GET|POST|PUT|PATCH|DELETE)\s+\"?\w+://[^\s\"]+\"?:\s*\d{3}\b[^{\n]*")


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """The content of an error body.

    Attributes:
        message: Its text; empty when it has none that can be shown.
        codes: The machine-readable names beside it.
        status_code: A status that it contains itself; else 0.
    """

    message: str = ""
    codes: tuple[str, ...] = ()
    status_code: int = 0


NO_ERROR_BODY = ErrorBody()


def error_body_of(failure: Failure) -> ErrorBody:
    """Return the body's content: an error object's message, or the first line of plain text."""
    body = failure.body
    if len(body) > BODY_BYTES_MAX:
        return NO_ERROR_BODY
    content_type = failure.headers.get("content-type", "").lower()
    text = body.decode(errors="replace").strip()
    if not text or "html" in content_type or text.startswith("<"):
        return NO_ERROR_BODY
    document = _parsed(text)
    if document is not None:
        return _error_body_in(document)
    line = text.splitlines()[0]
    # A truncated document may be a part of an answer, whose text is not about the failure.
    is_plain = not line.startswith(("{", "[")) and len(line) <= LINE_CHARACTERS_MAX
    if is_plain and (content_type.startswith("text/plain") or not content_type):
        return ErrorBody(line)
    return NO_ERROR_BODY


def safe(text: str) -> str:
    """Return a text on one line, without secrets, and limited in length."""
    line = "".join(each if each.isprintable() else " " for each in text)
    line = _URL.sub(_bare_url, " ".join(line.split()))
    line = Redactor().clean(_unwrapped(line))
    if len(line) <= DETAIL_CHARACTERS_MAX:
        return line
    return f"{line[: DETAIL_CHARACTERS_MAX - 1]}…"


def safe_text(failure: Failure) -> str:
    """Return the text of the failure; empty if that is a web page."""
    return "" if failure.text.lstrip().startswith("<") else safe(failure.text)


def _parsed(text: str) -> Mapping[str, object] | None:
    """Return the JSON object of a text, or the only one in its list."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value if isinstance(value, dict) else None


def _error_body_in(document: Mapping[str, object]) -> ErrorBody:
    error = document.get("error")
    inner = error if isinstance(error, dict) else {}
    candidates = (inner.get("message"), document.get("message"), error, document.get("detail"))
    message = next((each for each in candidates if isinstance(each, str) and each.strip()), "")
    upstream = inner.get("metadata")
    raw = upstream.get("raw") if isinstance(upstream, dict) else None
    if isinstance(raw, str) and raw.strip():
        message = f"{message}: {raw}"
    code = inner.get("code")
    status_code = code if isinstance(code, int) and 400 <= code <= 599 else 0
    return ErrorBody(message, tuple(_codes(document, inner)), status_code)


def _codes(*objects: Mapping[str, object]) -> Iterator[str]:
    for each in objects:
        for name in ("type", "code", "status", "__type"):
            value = each.get(name)
            if isinstance(value, str):
                yield value


def _unwrapped(line: str) -> str:
    """Return the provider's text, without the call that an SDK writes before it."""
    bare = _CALL.sub("", line)
    if bare == line:
        return line
    document = _parsed(bare)
    return (_error_body_in(document).message if document is not None else bare.strip()) or line


def _bare_url(match: re.Match[str]) -> str:
    scheme, _, rest = match[0].partition("#")[0].partition("?")[0].partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"

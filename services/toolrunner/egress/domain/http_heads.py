"""A strict parser of HTTP/1.1 heads.

Input that two parsers may read differently is refused, because the policy would be applied to one
reading and the server would use the other.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from toolrunner.egress.domain.errors import Reason, Refused

END: Final = b"\r\n\r\n"
TOKEN: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
REQUEST_LINE: Final = re.compile(rf"({TOKEN}) ([\x21-\x7e]+) HTTP/1\.([01])")
STATUS_LINE: Final = re.compile(r"HTTP/1\.[01] ([1-5][0-9]{2})(?: ([\x20-\x7e\t]*))?")
FIELD: Final = re.compile(rf"({TOKEN}):[ \t]*([\x20-\x7e\x80-\xff\t]*)")
LENGTH: Final = re.compile(r"[0-9]{1,15}", re.ASCII)
#: Hop-by-hop headers, and those that would reveal the proxy to a server.
OF_CONNECTION: Final = frozenset(
    (
        *("connection", "keep-alive", "proxy-connection", "proxy-authorization"),
        *("proxy-authenticate", "te", "trailer", "upgrade", "expect", "http2-settings", "host"),
    )
)
SINGLE: Final = ("host", "content-length", "transfer-encoding", "proxy-authorization")

Fields = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Body:
    """The framing of a body.

    Attributes:
        length: In bytes; None for chunked encoding.
    """

    length: int | None = 0


@dataclass(frozen=True, slots=True)
class RequestHead:
    """The head of a request; `fields` keep their order and spelling."""

    method: str
    target: str
    fields: Fields
    body: Body

    def get(self, name: str) -> str | None:
        """Return the value of the first field with a lower-case name."""
        return _get(self.fields, name)


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """The head of a response."""

    status: int
    phrase: str
    fields: Fields

    def get(self, name: str) -> str | None:
        """Return the value of the first field with a lower-case name."""
        return _get(self.fields, name)


def read_request(head: bytes) -> RequestHead:
    """Parse the head of a request, without the empty line at the end.

    Raises:
        Refused: It is not strictly HTTP/1.1.
    """
    line, fields = _lines(head)
    found = REQUEST_LINE.fullmatch(line)
    if found is None:
        raise Refused(Reason.MALFORMED, "The first line is not that of an HTTP/1.1 request.")
    if found[3] == "1" and _get(fields, "host") is None:
        raise Refused(Reason.MALFORMED, "The request names no Host.")
    return RequestHead(found[1], found[2], fields, _body(fields))


def read_response(head: bytes) -> ResponseHead:
    """Parse the head of a response, without the empty line at the end.

    Raises:
        Refused: It is not strictly HTTP/1.1.
    """
    try:
        line, fields = _lines(head)
    except Refused:
        raise Refused(Reason.BAD_ANSWER, "The host's answer is not strict HTTP/1.1.") from None
    found = STATUS_LINE.fullmatch(line)
    if found is None:
        raise Refused(Reason.BAD_ANSWER, "The host's answer is not HTTP/1.1.")
    return ResponseHead(int(found[1]), found[2] or "", fields)


def passed_on(fields: Fields, *, without: Iterable[str] = ()) -> Fields:
    """Return the end-to-end fields, without hop-by-hop ones."""
    named = {
        name.strip().lower()
        for key, value in fields
        if key.lower() == "connection"
        for name in value.split(",")
    }
    # The fields that frame the body belong to the message, whatever `Connection` names.
    dropped = (OF_CONNECTION | named | set(without)) - {"content-length", "transfer-encoding"}
    return tuple(each for each in fields if each[0].lower() not in dropped)


def written(line: str, fields: Fields) -> bytes:
    """Return an encoded head, with the empty line at the end."""
    lines = [line, *(f"{name}: {value}" for name, value in fields)]
    return "\r\n".join(lines).encode("latin-1") + END


def _lines(head: bytes) -> tuple[str, Fields]:
    line, *rest = head.decode("latin-1").split("\r\n")
    fields = []
    for each in rest:
        found = FIELD.fullmatch(each)
        if found is None:
            raise Refused(Reason.MALFORMED, "A header line is not strictly that.")
        fields.append((found[1], found[2].rstrip(" \t")))
    names = [name.lower() for name, _ in fields]
    for name in SINGLE:
        if names.count(name) > 1:
            raise Refused(Reason.MALFORMED, f"The header {name} comes more than once.")
    return line, tuple(fields)


def _body(fields: Fields) -> Body:
    length, coding = _get(fields, "content-length"), _get(fields, "transfer-encoding")
    if coding is not None:
        if length is not None:
            raise Refused(Reason.MALFORMED, "The length of the body is told in two ways.")
        if coding.lower() != "chunked":
            raise Refused(Reason.MALFORMED, "The body comes in an encoding other than chunked.")
        return Body(None)
    if length is None:
        return Body(0)
    if not LENGTH.fullmatch(length):
        raise Refused(Reason.MALFORMED, "The length of the body is no number.")
    return Body(int(length))


def _get(fields: Fields, name: str) -> str | None:
    return next((value for key, value in fields if key.lower() == name), None)

"""What proxies say about the requests that they forward.

Only the headers of trusted proxies count, and only those of one form: a proxy that writes one form
lets headers of the other pass as its client sent them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import Request

from gateway.http.limits.client_address import ClientAddresses, ProxyNetwork

#: The name that the client asked for, in the scope of a request.
HOST: Final = "parley.host"
ELEMENTS_MAX: Final = 32
#: The headers of both forms, as a request has them.
NAMES: Final = {
    b"x-forwarded-for": "x-forwarded-for",
    b"x-forwarded-proto": "x-forwarded-proto",
    b"x-forwarded-host": "x-forwarded-host",
    b"forwarded": "forwarded",
}


class ForwardedForm(StrEnum):
    """The headers that trusted proxies write."""

    X_FORWARDED = "x-forwarded"
    FORWARDED = "forwarded"


@dataclass(frozen=True, slots=True)
class Client:
    """The client of a request, behind all trusted proxies.

    Attributes:
        address: The key by which the client is counted.
        host: The host that it asked for, with the port if it named one.
        scheme: The scheme by which it asked, if a trusted proxy says so; else empty.
        ignored: Headers of proxies that were ignored, because the peer is not trusted.
    """

    address: str
    host: str
    scheme: str = ""
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Said:
    addresses: Sequence[str]
    host: str
    scheme: str


class Forwarding:
    """Finds out who made a request.

    Args:
        trusted: The proxies whose headers count.
        form: The headers that they write.
    """

    def __init__(
        self,
        trusted: Iterable[ProxyNetwork] = (),
        form: ForwardedForm = ForwardedForm.X_FORWARDED,
    ) -> None:
        self.addresses = ClientAddresses(trusted)
        self._form = form

    def client_of(self, request: Request) -> Client:
        """Return the client of a request."""
        peer = "" if request.client is None else request.client.host
        headers = request.headers
        host = headers.get("host", "")
        if not self.addresses.is_proxy(peer):
            given = {name for name, _ in headers.raw}
            ignored = tuple([name for raw, name in NAMES.items() if raw in given])
            return Client(self.addresses.of(peer, ()), host, ignored=ignored)
        said = _x_forwarded(headers) if self._form is ForwardedForm.X_FORWARDED else _rfc(headers)
        return Client(
            self.addresses.of(peer, said.addresses), said.host or host, said.scheme.lower()
        )


def _x_forwarded(headers: Headers) -> _Said:
    return _Said(
        headers.getlist("x-forwarded-for"),
        _last(headers.getlist("x-forwarded-host")),
        _last(headers.getlist("x-forwarded-proto")),
    )


def _last(values: Sequence[str]) -> str:
    """Return what the nearest proxy says, which comes last."""
    return values[-1].rpartition(",")[2].strip() if values else ""


def _rfc(headers: Headers) -> _Said:
    """Read the header Forwarded (RFC 7239); nothing if it is malformed."""
    elements = [
        _pairs(element)
        for value in headers.getlist("forwarded")
        for element in _split(value, ",")
        if element.strip()
    ]
    if not elements or len(elements) > ELEMENTS_MAX or any(each is None for each in elements):
        return _Said((), "", "")
    pairs = [each for each in elements if each is not None]
    nearest = pairs[-1]
    return _Said(
        [each.get("for", "unknown") for each in pairs],
        nearest.get("host", ""),
        nearest.get("proto", ""),
    )


def _pairs(element: str) -> dict[str, str] | None:
    """Return the parameters of one proxy; None if they are malformed."""
    found: dict[str, str] = {}
    for pair in _split(element, ";"):
        name, equals, value = pair.strip().partition("=")
        if not equals or not name or name.lower() in found:
            return None
        if value.startswith('"'):
            if len(value) < 2 or not value.endswith('"') or "\\" in value:
                return None
            value = value[1:-1]
        found[name.lower()] = value
    return found


def _split(text: str, separator: str) -> list[str]:
    """Split at separators outside of quoted strings."""
    parts, is_quoted = [""], False
    for character in text:
        if character == '"':
            is_quoted = not is_quoted
        if character == separator and not is_quoted:
            parts.append("")
        else:
            parts[-1] += character
    return parts

"""The targets of proxy requests: a tunnel, a plain request, or one sent over TLS with secrets.

Three forms are accepted. `CONNECT host:port` requests a tunnel, through which the workspace speaks
TLS itself. `GET http://host/path` is forwarded as plain HTTP. `GET /https/host/path`, sent to the
proxy as an origin server, is forwarded over TLS, and there the proxy can add a secret.
"""

import base64
import binascii
import hmac
import re
from dataclasses import dataclass
from typing import Final, TypeAlias

from toolrunner.egress.domain.errors import Reason, Refused
from toolrunner.egress.domain.hosts import HostPort
from toolrunner.egress.domain.http_heads import RequestHead

HTTP: Final = "http://"
TLS: Final = "/https/"
TOKEN_MARK: Final = "/~"
QUOTED_COLON: Final = re.compile(r"%3[Aa](?=[0-9]+\Z)")
OWN_NAMES: Final = frozenset({"127.0.0.1", "localhost", "::1"})
METHODS: Final = frozenset(
    (
        *("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"),
        *("PROPFIND", "PROPPATCH", "REPORT", "MKCOL", "COPY", "MOVE", "LOCK", "UNLOCK"),
    )
)


@dataclass(frozen=True, slots=True)
class Tunnel:
    """A connection for the workspace's own TLS."""

    host_port: HostPort


@dataclass(frozen=True, slots=True)
class Plain:
    """A request over plain HTTP; `path` includes the query."""

    host_port: HostPort
    path: str


@dataclass(frozen=True, slots=True)
class Secured:
    """A request that the proxy sends over TLS; `path` includes the query."""

    host_port: HostPort
    path: str


Target: TypeAlias = Tunnel | Plain | Secured


def target_of(head: RequestHead, token: str = "") -> Target:
    """Return the target of a request.

    Args:
        head: The request.
        token: The token that it has to contain; empty where the socket identifies the workspace.

    Raises:
        Refused: It is none of the three forms, or ambiguous.
    """
    try:
        return _target_of(head, token)
    except ValueError as error:
        raise Refused(Reason.MALFORMED, f"The address that is asked for {error}.") from None


def _target_of(head: RequestHead, token: str) -> Target:
    if head.method == "CONNECT":
        _check_token(head, token)
        host_port = HostPort.parse(head.target)
        _check_host(head, host_port, 0)
        if head.body.length != 0:
            raise Refused(Reason.MALFORMED, "A CONNECT has no body.")
        return Tunnel(host_port)
    if head.method not in METHODS:
        raise Refused(Reason.UNSUPPORTED, f"The method {head.method} is not passed on.")
    if head.target.startswith("/"):
        return _own(head, token)
    if not head.target.lower().startswith(HTTP):
        raise Refused(Reason.UNSUPPORTED, "Only http:// addresses are passed on as they are.")
    _check_token(head, token)
    authority, path = _parted(head.target[len(HTTP) :])
    host_port = HostPort.parse(authority, default_port=80)
    _check_host(head, host_port, 80)
    return Plain(host_port, path)


def _own(head: RequestHead, token: str) -> Target:
    host = head.get("host")
    if host is None or HostPort.parse(host, default_port=80).host not in OWN_NAMES:
        raise Refused(Reason.MISMATCH, "The request is for the proxy, and its Host is another.")
    path = head.target
    if token:
        shown, slash, rest = path.removeprefix(TOKEN_MARK).partition("/")
        if not path.startswith(TOKEN_MARK) or not _is_same(shown, token):
            raise Refused(Reason.WRONG_TOKEN, "The request does not show the workspace's token.")
        path = slash + rest
    if path.startswith(TLS):
        authority, rest = _parted(path[len(TLS) :])
        # Some programs percent-encode the colon before a port in a path.
        host = QUOTED_COLON.sub(":", authority, count=1)
        return Secured(HostPort.parse(host, default_port=443), rest)
    raise Refused(
        Reason.UNSUPPORTED, f"The proxy has no page {path.partition('?')[0][:100]!r} of its own."
    )


def _parted(text: str) -> tuple[str, str]:
    """Return host with port, and path with query."""
    if "\\" in text or "#" in text:
        raise ValueError("holds a backslash or a fragment")
    at = min(index for index in (text.find("/"), text.find("?"), len(text)) if index >= 0)
    path = text[at:]
    return text[:at], path if path.startswith("/") else f"/{path}"


def _check_host(head: RequestHead, host_port: HostPort, default_port: int) -> None:
    host = head.get("host")
    if host is None:
        return
    # The Host of a CONNECT is sent with the port by some clients and without it by others.
    if HostPort.parse(host, default_port=default_port or host_port.port) != host_port:
        raise Refused(Reason.MISMATCH, f"The request is for {host_port}, and its Host is another.")


def _check_token(head: RequestHead, token: str) -> None:
    if not token:
        return
    scheme, _, code = (head.get("proxy-authorization") or "").partition(" ")
    try:
        _, _, shown = base64.b64decode(code, validate=True).decode("ascii").partition(":")
    except (binascii.Error, UnicodeDecodeError):
        shown = ""
    if scheme.lower() != "basic" or not _is_same(shown, token):
        raise Refused(Reason.WRONG_TOKEN, "The request does not show the workspace's token.")


def _is_same(shown: str, token: str) -> bool:
    return hmac.compare_digest(shown.encode(), token.encode())

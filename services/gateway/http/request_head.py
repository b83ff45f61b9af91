"""Validates the head of a request before routing.

The parser checks the syntax of a head. The server of a request is named by its Host header, and by
a target that is an absolute URL; for requests through proxies these must be unique and equal. Two
Authorization headers are refused, because a proxy and this server could read different ones.
"""

import re
from collections.abc import Iterable
from typing import Final

from httptools import HttpParserInvalidURLError, parse_url

ONE_HOST: Final = "A request has exactly one Host header."
HOST_FORM: Final = "The Host header is a host name or address, and a port if there is one."
TARGET_FORM: Final = "The target of a request is a path, or a URL of this server."
TARGET_HOST: Final = "The URL in the target of a request and the Host header name the same server."
VERSION: Final = "This server speaks HTTP/1.1."
CODING: Final = "The only Transfer-Encoding that is taken is chunked."
CHUNKS_VERSION: Final = "A body in chunks needs HTTP/1.1; in HTTP/1.0 it has a Content-Length."
ONE_AUTHORIZATION: Final = "A request has at most one Authorization header."
ONE_LENGTH: Final = "A request has one Content-Length or is sent in chunks, not both."

_HOST: Final = re.compile(
    rb"(?:[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,253}[A-Za-z0-9_.])?|\[[0-9A-Fa-f:.]{2,45}\])"
    rb"(?::[0-9]{1,5})?"
)


def head_error(http_version: str, target: bytes, headers: Iterable[tuple[bytes, bytes]]) -> str:
    """Return what is wrong with a head, empty if it is valid.

    Args:
        http_version: As "1.1".
        target: The request target.
        headers: Names in lower case, and values.
    """
    if http_version not in ("1.0", "1.1"):
        return VERSION
    hosts, lengths, authorizations, is_chunked = [], 0, 0, False
    for name, value in headers:
        if name == b"host":
            hosts.append(value.strip())
        elif name == b"content-length":
            lengths += 1
        elif name == b"authorization":
            authorizations += 1
        elif name == b"transfer-encoding":
            if is_chunked or value.strip().lower() != b"chunked":
                return CODING
            is_chunked = True
    if lengths + is_chunked > 1:
        return ONE_LENGTH
    if is_chunked and http_version == "1.0":
        # A proxy that does not know chunks would take them for the body, or for another request.
        return CHUNKS_VERSION
    if len(hosts) > 1 or (not hosts and http_version == "1.1"):
        return ONE_HOST
    if authorizations > 1:
        return ONE_AUTHORIZATION
    if hosts and not _HOST.fullmatch(hosts[0]):
        return HOST_FORM
    if target.startswith(b"/"):
        return ""
    return _target_error(target, hosts[0] if hosts else b"")


def _target_error(target: bytes, host: bytes) -> str:
    scheme, separator, rest = target.partition(b"://")
    if not separator or scheme.lower() not in (b"http", b"https"):
        return TARGET_FORM
    try:
        parse_url(target)
    except HttpParserInvalidURLError:
        return TARGET_FORM
    authority = re.split(rb"[/?#]", rest, maxsplit=1)[0]
    if not _HOST.fullmatch(authority) or len(rest) == len(authority):
        return TARGET_FORM
    return "" if authority.lower() == host.lower() else TARGET_HOST

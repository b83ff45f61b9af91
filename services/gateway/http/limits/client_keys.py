"""Distinguishes clients before their requests are authenticated.

A client has a key of its own once a request with its credential was authenticated. Before that it
shares the key of its address: with a key for every credential, a client that sends another one with
each request would have as many keys as requests.
"""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from ipaddress import ip_address
from typing import Any, Final

from gateway.http.limits.client_address import address_key
from gateway.http.session_cookies import SESSION
from parley.cache import BoundedCache

CREDENTIALS_MAX: Final = 20_000
_DIGEST_BYTES: Final = 16

Headers = Iterable[tuple[bytes, bytes]]


class ClientKeys:
    """The keys of clients; remembers digests of the credentials that were authenticated.

    Args:
        credentials_max: How many are remembered; those that were not used for longest are dropped.
    """

    def __init__(self, credentials_max: int = CREDENTIALS_MAX) -> None:
        self._authenticated: BoundedCache[bytes, bool] = BoundedCache(credentials_max)

    def of(self, scope: Mapping[str, Any]) -> bytes:
        """Return the key of the client of a request."""
        digest = _digest_of(scope["headers"])
        if digest is not None and self._authenticated.get(digest):
            return digest
        client = scope["client"]
        return b"" if client is None else _address_key(str(client[0])).encode()

    def remember(self, scope: Mapping[str, Any]) -> None:
        """Remember the credential of a request that was authenticated."""
        digest = _digest_of(scope["headers"])
        if digest is not None:
            self._authenticated.put(digest, True)


def _address_key(text: str) -> str:
    try:
        return address_key(ip_address(text))
    except ValueError:
        return text


def _digest_of(headers: Headers) -> bytes | None:
    """Return the digest of the credential by which a request is authenticated, None without."""
    credential = b""
    for name, value in headers:
        if name == b"authorization":
            key = value.partition(b" ")[2].strip()
            credential = b"key " + key if key else b""
            break
        if name == b"cookie" and (session := _session_of(value)):
            credential = b"session " + session
    return blake2b(credential, digest_size=_DIGEST_BYTES).digest() if credential else None


def _session_of(cookies: bytes) -> bytes:
    """Return the token of the session; what else a client writes there makes it no other client."""
    for each in cookies.split(b";"):
        name, _, value = each.strip().partition(b"=")
        if name.removeprefix(b"__Host-") == SESSION.encode():
            return value
    return b""

"""Which endpoints may be stored: the names of hosts are resolved and checked for each delivery."""

import re
from collections.abc import Callable
from ipaddress import ip_address
from typing import Final

import httpx2

from parley.egress import AddressBlocked, GuardedSender, Policy, SendFailed

HOST_CHARACTERS_MAX: Final = 253
PORT_MAX: Final = 65535
#: Says neither why nor whether a name is known, which would tell users about the network here.
NOT_ALLOWED: Final = "the host is not allowed"
#: Says nothing of what was answered, which may be the greeting of another protocol.
NOT_HTTP: Final = "it does not answer as HTTP servers do"
_HTTPS_PORT = 443
_NAME: Final = re.compile(r"[\w.-]+", re.ASCII)


def endpoint_check(sender: GuardedSender, policy: Policy) -> Callable[[str], None]:
    """Return the check of endpoints, which raises SendFailed for one that must not be used."""

    def check(endpoint: str) -> None:
        try:
            sender.check(endpoint)
            url = httpx2.URL(endpoint)
            port = url.port or _HTTPS_PORT
            if not _is_host(url.raw_host.decode("ascii")) or port > PORT_MAX:
                raise SendFailed(NOT_ALLOWED)
            address = _address_of(url.host)
            if address is not None:
                policy.check_addresses(url.host, port, (address,))
        except AddressBlocked as blocked:
            raise SendFailed(NOT_ALLOWED) from blocked
        except SendFailed as failure:
            raise SendFailed(told(failure)) from failure

    return check


def told(failure: SendFailed) -> str:
    """Return why a request has no answer, in words for the user who chose the endpoint."""
    match failure.__cause__:
        case AddressBlocked():
            return NOT_ALLOWED
        case httpx2.ProtocolError():
            return NOT_HTTP
        case _:
            return str(failure)


def _is_host(host: str) -> bool:
    """Return whether a host is an address, or can be looked up: no label is empty or too long."""
    if not _NAME.fullmatch(host):
        return _address_of(host) is not None
    try:
        return len(host.encode("idna")) <= HOST_CHARACTERS_MAX
    except UnicodeError:
        return False


def _address_of(host: str) -> str | None:
    """Return the address that a host is written as; None for a name that has to be resolved."""
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return "127.0.0.1"
    try:
        return str(ip_address(host.strip("[]")))
    except ValueError:
        return None

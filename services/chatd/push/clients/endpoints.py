"""Which endpoints may be stored: the names of hosts are resolved and checked for each delivery."""

from collections.abc import Callable
from ipaddress import ip_address

import httpx2

from parley.egress import AddressBlocked, GuardedSender, Policy, SendFailed

HOST_CHARACTERS_MAX = 253
PORT_MAX = 65535
_HTTPS_PORT = 443


def endpoint_check(sender: GuardedSender, policy: Policy) -> Callable[[str], None]:
    """Return the check of endpoints, which raises SendFailed for one that must not be used."""

    def check(endpoint: str) -> None:
        sender.check(endpoint)
        url = httpx2.URL(endpoint)
        if not _is_host_name(url.raw_host.decode("ascii")) or (url.port or _HTTPS_PORT) > PORT_MAX:
            raise SendFailed("its host or port is not valid")
        address = _address_of(url.host)
        if address is not None:
            try:
                policy.check_addresses(url.host, url.port or _HTTPS_PORT, (address,))
            except AddressBlocked as blocked:
                raise SendFailed(str(blocked)) from blocked

    return check


def _is_host_name(host: str) -> bool:
    """Return whether a host can be looked up: no label of it is empty or too long."""
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

"""Where the node's git may fetch from: what an address means, and what of it is refused.

Theory: an address comes from a stranger, and git would go wherever it leads with the rights and
from the network of the node. So it is read here as strictly as it can be, its host is resolved
once, and git is told the addresses that were judged; what it resolved itself might be others.
"""

import asyncio
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from pathlib import PurePosixPath
from typing import Final, Protocol
from urllib.parse import SplitResult, urlsplit

#: Ports that a scheme means without saying so.
PORTS: Final = {"http": 80, "https": 443, "ssh": 22, "git": 9418}
RESOLVE_S: Final = 20.0
#: Look public, and are a cloud's own services or hold an address that would have to be judged too.
NOT_PUBLIC: Final = tuple(
    map(
        ip_network,
        (
            *("168.63.129.16/32", "100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24"),
            *("::/96", "::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "2001::/32", "2002::/16"),
        ),
    )
)
_HELPER: Final = re.compile(r"[A-Za-z0-9+.-]*::")
_SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]*)://")
_SHORT: Final = re.compile(r"(?:(?P<user>[^@/:]+)@)?(?P<host>[^@/:]+|\[[^]]+\]):(?P<path>.+)")
_USER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_HOST: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?|[0-9A-Fa-f:.]+")


class RemoteRefused(Exception):
    """A repository is not fetched from where it is said to be; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A repository somewhere.

    Attributes:
        protocol: The transport.
        host: Where it is; empty for this machine.
        port: The port; 0 for none.
        path: The path on this machine; empty if it is elsewhere.
    """

    protocol: str
    host: str = ""
    port: int = 0
    path: str = ""


class Resolver(Protocol):
    """Knows the addresses of hosts."""

    async def addresses(self, host: str, port: int) -> tuple[str, ...]:
        """Return all addresses of a host.

        Raises:
            OSError: It has none, or nobody says.
        """
        ...


class SystemResolver:
    """Asks the machine."""

    async def addresses(self, host: str, port: int) -> tuple[str, ...]:
        """Return all addresses of a host, each once."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(RESOLVE_S):
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return tuple(dict.fromkeys(str(each[4][0]) for each in found))


@dataclass(frozen=True, slots=True)
class Remotes:
    """Judges addresses.

    Attributes:
        protocols: Transports that may be used.
        private_hosts: Hosts that may be fetched from though their addresses are not public.
        resolver: Knows addresses.
        closed: A directory of this machine that nothing is fetched from: it has the workspaces of
            others in it. Empty for none.
    """

    protocols: tuple[str, ...]
    private_hosts: tuple[str, ...]
    resolver: Resolver
    closed: str = ""

    def read(self, url: str) -> Remote:
        """Return what an address means.

        Raises:
            RemoteRefused: It is odd, holds a credential, or needs a transport that is not allowed.
        """
        remote = remote_of(url)
        if remote.protocol not in self.protocols:
            allowed = ", ".join(self.protocols)
            raise RemoteRefused(
                f"this node does not fetch repositories by {remote.protocol!r}, only by {allowed}; "
                "give another address, or have TOOLRUNNER_GIT_PROTOCOLS changed"
            )
        if remote.protocol == "file":
            self._check_path(PurePosixPath(remote.path))
        return remote

    def _check_path(self, path: PurePosixPath) -> None:
        """Refuse what is not where it seems to be, and what is this node's own."""
        # Git would read a percent sign as the beginning of another character.
        if "%" in str(path) or os.path.realpath(path) != str(path):
            raise RemoteRefused(
                f"{str(path)!r} leads elsewhere by a link, '..' or '%'; give the path itself"
            )
        if self.closed and path.is_relative_to(os.path.realpath(self.closed)):
            raise RemoteRefused(
                f"{str(path)!r} is in the data of this node; fork the workspace instead"
            )

    async def judged(self, remote: Remote) -> tuple[str, ...]:
        """Return the addresses that git may connect to; none for this machine.

        Raises:
            RemoteRefused: One of them is not public, or there is none.
        """
        if not remote.host:
            return ()
        try:
            found = await self.resolver.addresses(remote.host, remote.port)
        except (OSError, TimeoutError, UnicodeError) as error:
            raise RemoteRefused(f"the host {remote.host!r} has no address") from error
        is_inside = not all(map(is_public, found))
        if is_inside and remote.host.lower() not in self.private_hosts:
            raise RemoteRefused(
                f"the host {remote.host!r} has an address that is not public; if that is meant, "
                "have the operator name the host in TOOLRUNNER_GIT_PRIVATE_HOSTS"
            )
        return found


def remote_of(url: str) -> Remote:
    """Return what an address means, whoever may use it.

    Raises:
        RemoteRefused: It is odd, or holds a credential.
    """
    if not url.isprintable() or " " in url or url.startswith("-"):
        raise RemoteRefused("the address of the repository has odd characters, or begins with '-'")
    if helper := _HELPER.match(url):
        raise RemoteRefused(f"{helper[0]!r} runs a program; give an address by https or ssh")
    if scheme := _SCHEME.match(url):
        return _whole(scheme[1], url)
    if url.startswith("/"):
        return Remote("file", path=url)
    short = _SHORT.fullmatch(url)
    if short is None:
        raise RemoteRefused(
            "the address of the repository is none of https, ssh, or user@host:path"
        )
    _check_user(short["user"])
    return Remote("ssh", _host(short["host"]), PORTS["ssh"])


def _whole(scheme: str, url: str) -> Remote:
    try:
        parts = urlsplit(url)
        port = parts.port or PORTS.get(scheme, 0)
    except ValueError as error:
        raise RemoteRefused(f"the address of the repository cannot be read: {error}") from None
    if scheme == "file":
        if parts.netloc:
            raise RemoteRefused("an address of this machine is file:///path")
        return Remote("file", path=parts.path)
    _check_credentials(scheme, parts)
    return Remote(scheme, _host(parts.hostname or ""), port)


def _check_credentials(scheme: str, parts: SplitResult) -> None:
    if parts.password is not None or parts.query or parts.fragment:
        raise RemoteRefused(
            "the address of the repository holds a credential or a query; grant the workspace a "
            "secret instead"
        )
    if scheme == "ssh":
        _check_user(parts.username)
    elif parts.username is not None:
        raise RemoteRefused(
            "the address of the repository holds a user, which may be a token; grant the workspace "
            "a secret instead"
        )


def _check_user(user: str | None) -> None:
    if user is not None and not _USER.fullmatch(user):
        raise RemoteRefused("the address of the repository has an odd user")


def _host(text: str) -> str:
    host = text.removeprefix("[").removesuffix("]")
    if not _HOST.fullmatch(host):
        raise RemoteRefused("the address of the repository has an odd host")
    return host


def is_public(address: str) -> bool:
    """Tell whether an address is one of the public internet."""
    try:
        read = ip_address(address)
    except ValueError:
        return False
    if any(read in network for network in NOT_PUBLIC):
        return False
    return read.is_global and not read.is_multicast and not read.is_reserved


def pinned(remote: Remote, addresses: tuple[str, ...]) -> tuple[str, ...]:
    """Return options that have git connect to judged addresses only, and follow nobody away."""
    options = ("-c", "http.followRedirects=false")
    if remote.protocol not in ("http", "https") or not addresses:
        return options
    spelled = ",".join(f"[{each}]" if ":" in each else each for each in addresses)
    return (*options, "-c", f"http.curloptResolve={remote.host}:{remote.port}:{spelled}")


def is_led(url: str, variables: Mapping[str, str]) -> bool:
    """Tell whether git is told to go another way to a repository, where somebody else judges."""
    names = (name for name in variables if name.startswith("GIT_CONFIG_VALUE_"))
    keys = {name: variables.get(name.replace("_VALUE_", "_KEY_"), "") for name in names}
    return any(
        key.lower().endswith(".insteadof") and url.startswith(variables[name])
        for name, key in keys.items()
    )

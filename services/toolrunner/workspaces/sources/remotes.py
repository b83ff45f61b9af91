"""The remotes that the node's git may fetch from: parsing and checks of repository URLs.

Theory: a URL is untrusted input, and git would connect to it with the permissions and from the
network of the node. So it is parsed strictly here, its host is resolved once, and git is given the
checked addresses; its own resolution might return others.
"""

import asyncio
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final, Protocol
from urllib.parse import SplitResult, urlsplit

from parley.public_addresses import is_public

#: The default ports of the schemes.
PORTS: Final = {"http": 80, "https": 443, "ssh": 22, "git": 9418}
RESOLVE_S: Final = 20.0
_HELPER: Final = re.compile(r"[A-Za-z0-9+.-]*::")
_SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]*)://")
_SHORT: Final = re.compile(r"(?:(?P<user>[^@/:]+)@)?(?P<host>[^@/:]+|\[[^]]+\]):(?P<path>.+)")
_USER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_HOST: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?|[0-9A-Fa-f:.]+")


class RemoteRefused(Exception):
    """A repository may not be fetched from its URL; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A parsed repository URL.

    Attributes:
        protocol: The transport.
        host: The host; empty for this machine.
        port: The port; 0 for none.
        path: The path on this machine; empty if it is remote.
    """

    protocol: str
    host: str = ""
    port: int = 0
    path: str = ""


class Resolver(Protocol):
    """Resolves hosts."""

    async def addresses(self, host: str, port: int) -> tuple[str, ...]:
        """Return all addresses of a host.

        Raises:
            OSError: It has none, or the resolver fails.
        """
        ...


class SystemResolver:
    """Calls the resolver of the machine."""

    async def addresses(self, host: str, port: int) -> tuple[str, ...]:
        """Return all addresses of a host, each once."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(RESOLVE_S):
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return tuple(dict.fromkeys(str(each[4][0]) for each in found))


@dataclass(frozen=True, slots=True)
class Remotes:
    """Checks repository URLs.

    Attributes:
        protocols: Transports that may be used.
        private_hosts: Hosts that may be fetched from although their addresses are not public.
        resolver: Resolves hosts.
        closed: A directory of this machine that nothing may be fetched from, because it contains
            the workspaces of other users. Empty for none.
    """

    protocols: tuple[str, ...]
    private_hosts: tuple[str, ...]
    resolver: Resolver
    closed: str = ""

    def read(self, url: str) -> Remote:
        """Parse a URL.

        Raises:
            RemoteRefused: It is malformed, contains a credential, or uses a transport that is not
                allowed.
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
        """Refuse paths with links or escapes, and the node's own data."""
        # Git would decode a percent sign as an escape.
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
    """Parse a URL, without a check of the transport.

    Raises:
        RemoteRefused: It is malformed, or contains a credential.
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


def pinned(remote: Remote, addresses: tuple[str, ...]) -> tuple[str, ...]:
    """Return options that make git connect to checked addresses only, without redirects."""
    options = ("-c", "http.followRedirects=false")
    if remote.protocol not in ("http", "https") or not addresses:
        return options
    spelled = ",".join(f"[{each}]" if ":" in each else each for each in addresses)
    return (*options, "-c", f"http.curloptResolve={remote.host}:{remote.port}:{spelled}")


def is_led(url: str, variables: Mapping[str, str]) -> bool:
    """Return whether git accesses a repository by a rewritten URL, where the proxy checks it."""
    names = (name for name in variables if name.startswith("GIT_CONFIG_VALUE_"))
    keys = {name: variables.get(name.replace("_VALUE_", "_KEY_"), "") for name in names}
    return any(
        key.lower().endswith(".insteadof") and url.startswith(variables[name])
        for name, key in keys.items()
    )

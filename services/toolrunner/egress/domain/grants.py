"""Secrets that the proxy adds for a workspace: for which hosts, and in which header."""

import base64
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from toolrunner.egress.domain.errors import PolicyInvalid, SecretUnavailable
from toolrunner.egress.domain.hosts import HostPattern, HostPort
from toolrunner.primitives.domain import WorkspaceId

AUTHORIZATION: Final = "Authorization"
#: A path that every git repository over HTTP has.
REPOSITORY_PATH: Final = "/repository/info/refs?service=git-upload-pack"
GIT_USER: Final = "x-access-token"
VALUE_BYTES_MAX: Final = 8 * 1024
HEADER: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,99}")
#: Headers that define the message; a secret in one of them would change it.
OF_THE_MESSAGE: Final = frozenset(
    ("host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "expect")
)
_GIT_PATH: Final = re.compile(
    r"/[^?]*/(?:info/refs\?service=git-(?:upload|receive)-pack"
    r"|git-(?:upload|receive)-pack|info/lfs/[^?]*)"
)
#: Parts of a path that some servers read as a parent directory or as a slash: dots, also with a
#: parameter or percent-encoded, doubly encoded percent signs, repeated slashes, and backslashes.
_WINDING: Final = re.compile(r"/\.{0,2}(?:;[^/]*)?(?=/|$)|%(?:2e|2f|5c|25|00)|\\", re.IGNORECASE)


class Delivery(StrEnum):
    """How a secret is delivered; names are those of the proto."""

    PROXY = "proxy"
    GIT = "git"
    ENVIRONMENT = "environment"


@dataclass(frozen=True, slots=True)
class Grant:
    """A secret that is granted to one workspace.

    Attributes:
        name: The secret's name.
        hosts: Hosts to which it may be sent, over TLS.
        delivery: How it is delivered.
        header: The header that contains it.
        variable: The environment variable that contains it, if delivered so.
    """

    name: str
    hosts: tuple[HostPattern, ...]
    delivery: Delivery = Delivery.PROXY
    header: str = AUTHORIZATION
    variable: str = ""

    def __post_init__(self) -> None:
        if not HEADER.fullmatch(self.header) or self.header.lower() in OF_THE_MESSAGE:
            raise PolicyInvalid(self.header, "is no header that can carry a secret")


@dataclass(frozen=True, slots=True)
class SecretValue:
    """A secret's value, held for one request."""

    username: str
    value: bytes = field(repr=False)


def is_git_path(path: str) -> bool:
    """Return whether this is a path with query of git's protocol, without ambiguous parts."""
    if _GIT_PATH.fullmatch(path) is None:
        return False
    return _WINDING.search(path.partition("?")[0]) is None


def grant_for(grants: Iterable[Grant], host_port: HostPort, path: str) -> Grant | None:
    """Return the secret to add to a request over TLS, if any.

    A secret for git is added to requests of git only; otherwise the most specific host wins.
    """
    is_git = is_git_path(path)
    fitting = [
        (grant, pattern)
        for grant in grants
        if grant.delivery is Delivery.PROXY or (grant.delivery is Delivery.GIT and is_git)
        for pattern in grant.hosts
        if pattern.meets(host_port.host) and (pattern.port or 443) == host_port.port
    ]
    if not fitting:
        return None
    return min(fitting, key=_distance)[0]


def password_advice(grants: Iterable[Grant], workspace_id: WorkspaceId, host_port: HostPort) -> str:
    """Return why a git host asks for a password, and what to do."""
    grant = grant_for(grants, host_port, REPOSITORY_PATH)
    if grant is None:
        return (
            f"No secret for {host_port} is granted to this workspace. Its owner can store one with "
            f"`parley secret put NAME --host {host_port} --delivery {Delivery.GIT}` and grant it "
            f"with `parley secret grant {workspace_id} NAME`."
        )
    return (
        f"The secret {grant.name!r} was added for {host_port} and the host did not accept it. It "
        "may have expired, or lack the right; its owner can store a new value."
    )


def header_of(grant: Grant, secret: SecretValue) -> tuple[str, str]:
    """Return the header that contains a secret.

    Raises:
        ValueError: The value is not valid in a header.
    """
    if len(secret.value) > VALUE_BYTES_MAX:
        raise ValueError("its value is too long for a header")
    value = secret.value.decode("utf-8")
    if grant.delivery is Delivery.GIT:
        return AUTHORIZATION, _basic(secret.username or GIT_USER, value)
    if not value.isprintable() or not value.isascii():
        raise ValueError("its value has characters that cannot stand in a header")
    if grant.header.lower() != AUTHORIZATION.lower():
        return grant.header, value
    return AUTHORIZATION, _basic(secret.username, value) if secret.username else f"Bearer {value}"


def _distance(fitting: tuple[Grant, HostPattern]) -> tuple[bool, bool, int, str]:
    grant, pattern = fitting
    is_general = grant.delivery is not Delivery.GIT
    return is_general, pattern.is_wildcard, -len(pattern.host), grant.name


def _basic(username: str, value: str) -> str:
    return "Basic " + base64.b64encode(f"{username}:{value}".encode()).decode("ascii")


@dataclass(frozen=True, slots=True)
class SecretUse:
    """One use of a secret, as it is requested and audited.

    Attributes:
        workspace_id: The workspace of the grant.
        name: The secret.
        host: The host it is sent to.
        purpose: Method and path of the request, without its query.
    """

    workspace_id: WorkspaceId
    name: str
    host: str
    purpose: str


class SecretSource(Protocol):
    """Returns values, one for each use."""

    async def use(self, use: SecretUse) -> SecretValue:
        """Return the value for this one use.

        Raises:
            SecretUnavailable: The grant was revoked, or the source is unavailable.
        """
        ...


class NoSecrets:
    """No secrets are available."""

    async def use(self, use: SecretUse) -> SecretValue:
        """Raise.

        Raises:
            SecretUnavailable: Always.
        """
        raise SecretUnavailable(use.name, "this node has no service that stores secrets")

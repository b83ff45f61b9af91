"""Secrets for workspaces: their metadata without the value, and where they may be sent.

The node checks where a secret is sent; chatd checks it again before it returns the value, because
the node runs untrusted code.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from chatd.primitives.domain.errors import ChatError

NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
HEADER: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,99}")
#: Headers that frame a request; a secret must not replace them.
OF_THE_MESSAGE: Final = frozenset(
    ("host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "expect")
)
LABEL: Final = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
HOST: Final = re.compile(rf"(\*\.)?({LABEL}(?:\.{LABEL})*)(?::([1-9][0-9]{{0,4}}))?")
HOST_CHARACTERS_MAX: Final = 255
TLS_PORT: Final = 443
PORT_MAX: Final = 65535
HINT_CHARACTERS: Final = 4
#: Shorter values have no hint, because it would reveal too much of them.
HINTED_CHARACTERS_MIN: Final = 12


class Delivery(StrEnum):
    """How a secret is delivered."""

    PROXY = "proxy"
    GIT = "git"
    ENVIRONMENT = "environment"


class Outcome(StrEnum):
    """The outcome of a node's request for a value."""

    GIVEN = "given"
    NOT_PLACED = "not_placed"
    NOT_GRANTED = "not_granted"
    NO_SUCH_SECRET = "no_such_secret"
    WRONG_HOST = "wrong_host"


class SecretNotFound(ChatError):
    """There is no such secret for this caller."""

    def __init__(self, secret: str) -> None:
        super().__init__(f"no secret {secret}; list them to see which there are")
        self.secret = secret


class SecretNotGranted(ChatError):
    """The workspace may not use the secret for this request."""

    def __init__(self, name: str, outcome: Outcome) -> None:
        super().__init__(f"the secret {name} is not granted: {outcome}")
        self.name = name
        self.outcome = outcome


class SecretValueNeeded(ChatError):
    """A stored value would be sent to another host, or in another way."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the value of {name} was not given for this use; give it again")
        self.name = name


@dataclass(frozen=True, slots=True)
class Secret:
    """A stored secret without its value.

    Attributes:
        owner_id: Its owner; empty for a secret of the installation.
        hosts: Host patterns it may be sent to, in canonical form.
        version: Incremented with each change; 0 for a secret that is not stored yet.
    """

    id: str
    name: str
    owner_id: str
    delivery: Delivery
    hosts: tuple[str, ...]
    description: str = ""
    username: str = ""
    header: str = ""
    hint: str = ""
    version: int = 0
    created_at: datetime | None = None
    last_used_at: datetime | None = None

    @property
    def variable(self) -> str:
        """The environment variable that contains it, if it is delivered that way."""
        is_variable = self.delivery is Delivery.ENVIRONMENT
        return self.name.upper().replace("-", "_") if is_variable else ""

    def may_go_to(self, place: str) -> bool:
        """Return whether it may be sent to a host, given as `host:port`.

        A secret that is delivered as an environment variable is not sent to hosts: it is requested
        without one.
        """
        if self.delivery is Delivery.ENVIRONMENT:
            return not place
        return any(_meets(pattern, place) for pattern in self.hosts)

    def check_kept_value(self, stored: "Secret") -> None:
        """Check that the value of `stored` may be kept for this use of it.

        A subset of its hosts is allowed. Another delivery or header could disclose the value to
        others.

        Raises:
            SecretValueNeeded: the value would be sent to hosts, or in a way, it was not given for.
        """
        is_sent_alike = (self.delivery, self.header) == (stored.delivery, stored.header)
        if not is_sent_alike or not all(map(stored.covers, self.hosts)):
            raise SecretValueNeeded(self.name)

    def covers(self, pattern: str) -> bool:
        """Return whether the hosts of this secret include all hosts of a pattern."""
        return pattern in self.hosts or any(_meets(own, pattern) for own in self.hosts)


@dataclass(frozen=True, slots=True)
class RequestedUse:
    """A node's request for the value of a secret, for one use."""

    request_id: str
    node_id: str
    registration_epoch: int
    workspace_id: str
    epoch: int
    secret_name: str
    host: str
    purpose: str


@dataclass(frozen=True, slots=True)
class RecordedUse:
    """A recorded request of a node for a secret; without a host for an environment variable."""

    id: str
    workspace_id: str
    node_id: str
    secret_name: str
    host: str
    purpose: str
    outcome: Outcome
    used_at: datetime


def canonical_pattern(text: str) -> str | None:
    """Return a host pattern in canonical form, None if it is invalid."""
    found = HOST.fullmatch(text.lower())
    if found is None or len(text) > HOST_CHARACTERS_MAX or not text.isascii():
        return None
    port = int(found[3] or TLS_PORT)
    if port > PORT_MAX or (found[1] and "." not in found[2]):
        return None
    return f"{found[1] or ''}{found[2]}:{port}"


def hint_of(value: bytes) -> str:
    """Return the last characters of a value as a hint; empty if the value is too short."""
    text = value.decode("utf-8", "replace")
    return text[-HINT_CHARACTERS:] if len(text) >= HINTED_CHARACTERS_MIN else ""


def _meets(pattern: str, place: str) -> bool:
    asked = canonical_pattern(place)
    if asked is None or asked.startswith("*"):
        return False
    if not pattern.startswith("*."):
        return asked == pattern
    host, _, port = asked.rpartition(":")
    suffix, _, wanted = pattern[1:].rpartition(":")
    return host.endswith(suffix) and port == wanted

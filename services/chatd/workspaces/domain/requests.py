"""Requests for new workspaces, from users and models."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from chatd.primitives.domain.ids import OwnerId


@dataclass(frozen=True, slots=True)
class NewWorkspace:
    """A request for a workspace.

    Attributes:
        key: The idempotency key, unique for this owner.
        body_hash: Hash of the request, so that the same key with another body is refused.
        ttl_ms: Lifetime, None for the default.
        chat_id: The chat that will use it; empty for none.
    """

    owner_id: OwnerId
    key: str
    body_hash: bytes
    template_id: str
    name: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    preset_id: str = ""
    ttl_ms: int | None = None
    chat_id: str = ""
    secret_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NewFork:
    """A request for a copy of a workspace."""

    owner_id: OwnerId
    key: str
    body_hash: bytes
    source_id: str
    mode: str = ""
    name: str = ""
    chat_id: str = ""

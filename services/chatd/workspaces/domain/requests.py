"""What people and models ask for when they ask for workspaces."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from chatd.primitives.domain.ids import OwnerId


@dataclass(frozen=True, slots=True)
class NewWorkspace:
    """What somebody asks for.

    Attributes:
        key: What makes this request the same as its repetition, for this owner.
        body_hash: What was asked, so that the same key for something else is refused.
        ttl_ms: Lifetime, None for the usual one.
        chat_id: The chat that will work in it; empty for none.
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
    """What somebody asks to be copied."""

    owner_id: OwnerId
    key: str
    body_hash: bytes
    source_id: str
    mode: str = ""
    name: str = ""
    chat_id: str = ""

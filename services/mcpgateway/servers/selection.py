"""Selects the servers of a chat: pure functions of the requested, stored and existing ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mcpgateway.servers.domain import ChatContext, Reason, Server


@dataclass(frozen=True, slots=True)
class Selection:
    """The servers of a chat.

    Attributes:
        stored: The servers to store with the chat; forced servers are not stored.
        effective: The servers that can be used now.
        forced: Those of the effective ones that are forced on.
        invalid: Requested servers that may not be chosen, and why.
    """

    stored: tuple[str, ...]
    effective: tuple[str, ...]
    forced: tuple[str, ...]
    invalid: tuple[tuple[str, Reason], ...]


def select(
    context: ChatContext,
    *,
    requested: Sequence[str] | None,
    stored: Sequence[str],
    known: Mapping[str, Server],
    forced: Sequence[str],
    defaults: Sequence[str] = (),
) -> Selection:
    """Return the servers that the chat stores and uses.

    A stored server is kept even if it cannot be used now, so that it is used again after it is
    enabled; only newly requested ones have to be usable.

    Args:
        context: The chat.
        requested: The servers of the request; None keeps the stored ones.
        stored: The stored servers of the chat.
        known: The servers that the user may use, by id, forced and default ones included.
        forced: Ids of the enabled servers that every chat uses.
        defaults: Ids of those that the chat uses because it has not chosen any.
    """
    wanted = tuple(dict.fromkeys(stored if requested is None else requested))
    reasons = {
        server_id: _reason(known.get(server_id)) for server_id in wanted if server_id not in stored
    }
    invalid = tuple((id_, reason) for id_, reason in reasons.items() if reason is not None)
    chosen = tuple(server_id for server_id in wanted if reasons.get(server_id) is None)
    candidates = dict.fromkeys((*chosen, *defaults, *forced))
    effective = tuple(id_ for id_ in candidates if _is_usable(known.get(id_), context))
    return Selection(
        stored=chosen,
        effective=effective,
        forced=tuple(id_ for id_ in effective if id_ in forced),
        invalid=invalid,
    )


def _reason(server: Server | None) -> Reason | None:
    if server is None:
        return Reason.SERVER_NOT_FOUND
    return None if server.settings.is_enabled else Reason.SERVER_DISABLED


def _is_usable(server: Server | None, context: ChatContext) -> bool:
    return server is not None and server.settings.is_enabled and context.allows(server.settings)

"""The cached rules of a process, so that judging a call needs no query.

A change is published over the bus with the scope that it is of. A notice that was lost is repaired
by a resync of the bus, and at the latest when an entry expires. While no chat at all has rules, a
new chat costs no query.
"""

from typing import Protocol

from chatd.approvals.domain.rules import INSTALLATION, Rule, Scope, ScopeKind
from chatd.primitives.domain.ids import ChatId, OwnerId
from parley.cache import BoundedCache
from parley.clock import Clock

SCOPES_MAX = 20_000
EXPIRES_S = 60.0


class StoredRules(Protocol):
    """The store of rules."""

    async def of_scope(self, scope: Scope) -> tuple[Rule, ...]:
        """Return the rules of a scope."""
        ...

    async def are_there_any(self, kind: ScopeKind) -> bool:
        """Return whether any user or chat has rules."""
        ...


class CachedRules:
    """Caches the rules of scopes."""

    def __init__(self, stored: StoredRules, clock: Clock) -> None:
        self._stored = stored
        self._known: BoundedCache[Scope, tuple[Rule, ...]] = BoundedCache(
            SCOPES_MAX, clock=clock, ttl_of=lambda _: EXPIRES_S
        )
        self._any: BoundedCache[ScopeKind, bool] = BoundedCache(
            len(ScopeKind), clock=clock, ttl_of=lambda _: EXPIRES_S
        )

    async def of_turn(self, owner_id: OwnerId, root_chat_id: ChatId) -> tuple[Rule, ...]:
        """Return the rules for the calls of a turn.

        Raises:
            DatabaseUnavailable: They are not cached and cannot be read.
        """
        scopes = (
            INSTALLATION,
            Scope(ScopeKind.USER, owner_id),
            Scope(ScopeKind.CHAT, root_chat_id),
        )
        return tuple([rule for scope in scopes for rule in await self._of(scope)])

    def on_notice(self, key: str) -> None:
        """Forget the scope that was changed, here or in another process."""
        kind, _, scope_id = key.partition(" ")
        self._any.forget(ScopeKind(kind))
        self._known.forget(Scope(ScopeKind(kind), scope_id))

    def on_resync(self) -> None:
        """Forget everything, because a notice may have been lost."""
        self._any.clear()
        self._known.clear()

    async def _of(self, scope: Scope) -> tuple[Rule, ...]:
        kind = scope.kind
        if not await self._any.get_or_read(kind, lambda: self._stored.are_there_any(kind)):
            return ()
        return await self._known.get_or_read(scope, lambda: self._stored.of_scope(scope))


def notice_key(scope: Scope) -> str:
    """Return the key of a scope in notices."""
    return f"{scope.kind} {scope.id}".strip()

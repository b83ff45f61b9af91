"""The cached hooks of a process, so that an event without hooks needs no query.

A change is published over the bus with its owner. A notice that was lost is repaired by a resync of
the bus, and at the latest when an entry expires. While no user has hooks, a new user costs no
query.
"""

from chatd.hooks.domain.hooks import Hook, HookEvent
from chatd.hooks.domain.ports import StoredHooks
from parley.cache import BoundedCache
from parley.clock import Clock

OWNERS_MAX = 20_000
EXPIRES_S = 60.0
FOR_ALL = ""


class CachedHooks:
    """Caches hooks by their owners."""

    def __init__(self, stored: StoredHooks, clock: Clock) -> None:
        self._stored = stored
        self._known: BoundedCache[str, tuple[Hook, ...]] = BoundedCache(
            OWNERS_MAX, clock=clock, ttl_of=lambda _: EXPIRES_S
        )
        self._any: BoundedCache[str, bool] = BoundedCache(
            1, clock=clock, ttl_of=lambda _: EXPIRES_S
        )

    async def matching(
        self, owner_id: str, event: HookEvent, tool_name: str = ""
    ) -> tuple[Hook, ...]:
        """Return the hooks of an event in the chats of a user: those for all chats first.

        Raises:
            DatabaseUnavailable: They are not cached and cannot be read.
        """
        hooks = await self._known.get_or_read(FOR_ALL, lambda: self._stored.of_owner(FOR_ALL))
        if await self._any.get_or_read(FOR_ALL, self._stored.do_users_have_any):
            own = await self._known.get_or_read(owner_id, lambda: self._stored.of_owner(owner_id))
            hooks = (*hooks, *own)
        return tuple(hook for hook in hooks if hook.matches(event, tool_name))

    def on_notice(self, owner_id: str) -> None:
        """Forget the hooks of an owner, which were changed here or in another process."""
        self._any.clear()
        self._known.forget("" if owner_id == ALL_KEY else owner_id)

    def on_resync(self) -> None:
        """Forget everything, because a notice may have been lost."""
        self._any.clear()
        self._known.clear()


#: The key of the hooks for all chats in notices, which must not be empty.
ALL_KEY = "all"


def notice_key(owner_id: str) -> str:
    """Return the key of an owner in notices."""
    return owner_id or ALL_KEY

"""BreakGlassService: opening, listing and ending accesses."""

from collections.abc import Callable
from datetime import timedelta
from typing import Final

import grpc

from chatd.chats.domain.break_glass import AccessPlace
from chatd.chats.rpc.convert import access_to_proto
from chatd.chats.store.access.break_glass import BreakGlass
from chatd.models.rpc.administration import made_id
from chatd.primitives.domain.errors import InvalidRequest
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.primitives.rpc import fields
from chatd.primitives.rpc.page_tokens import place_of, token_of
from chatd.users.domain.grantees import Grantee, GranteeKind, Grantees
from chatd.users.rpc.callers import caller_as_owner, require_grantees
from parley.api.chat.v1 import break_glass_service_pb2 as api
from parley.api.chat.v1.break_glass_service_pb2_grpc import BreakGlassServiceServicer

Context = grpc.aio.ServicerContext
DURATION_DEFAULT_S: Final = 3600
PAGE_LENGTH: Final = 50
READERS_OF_ALL: Final = frozenset({"owner", "admin", "auditor"})


class BreakGlassServicer(BreakGlassServiceServicer):
    """Serves accesses.

    Args:
        accesses: Stores them.
        users: Says whether a user exists.
        changed: Is called with the id of each access that was opened or ended, so that the feed of
            its user is looked at soon.
    """

    def __init__(
        self, accesses: BreakGlass, users: Grantees, changed: Callable[[ChatId], None]
    ) -> None:
        self._accesses = accesses
        self._users = users
        self._changed = changed

    async def OpenBreakGlass(
        self, request: api.OpenBreakGlassRequest, context: Context
    ) -> api.OpenBreakGlassResponse:
        """Open an access to the chats of a user."""
        caller = caller_as_owner()
        key = fields.client_key_of(request, request.request_id)
        user_id = fields.uuid_of(request.user_id, "user_id")
        if user_id == caller.id:
            raise InvalidRequest("user_id", "is your own; your chats need no access")
        if len(request.reason.strip()) < len(request.reason) or not request.reason.isprintable():
            raise InvalidRequest("reason", "has line breaks, or blanks at its ends")
        grantee = Grantee(GranteeKind.USER, user_id)
        await require_grantees(self._users, (grantee,), fields=("user_id",))
        access = await self._accesses.open(
            made_id(request, key.key, caller),
            administrator_id=caller.id,
            owner_id=OwnerId(user_id),
            reason=request.reason,
            duration=timedelta(seconds=request.duration_s or DURATION_DEFAULT_S),
            request_hash=key.body_hash,
        )
        self._changed(ChatId(access.id))
        return api.OpenBreakGlassResponse(access=access_to_proto(access))

    async def ListBreakGlass(
        self, request: api.ListBreakGlassRequest, context: Context
    ) -> api.ListBreakGlassResponse:
        """List accesses; members see those to their own chats."""
        caller = caller_as_owner()
        owner_id = OwnerId(request.user_id.lower()) if request.user_id else None
        if caller.role not in READERS_OF_ALL:
            if owner_id not in (None, caller.id):
                return api.ListBreakGlassResponse()
            owner_id = caller.id
        length = request.page_size or PAGE_LENGTH
        page = await self._accesses.page(
            owner_id,
            include_ended=request.include_ended,
            after=place_of(request.page_token, AccessPlace),
            length=length + 1,
        )
        shown, has_more = page[:length], len(page) > length
        last = AccessPlace(shown[-1].opened_at, shown[-1].id) if shown else None
        return api.ListBreakGlassResponse(
            accesses=map(access_to_proto, shown),
            next_page_token=token_of(last) if has_more and last is not None else "",
        )

    async def EndBreakGlass(
        self, request: api.EndBreakGlassRequest, context: Context
    ) -> api.EndBreakGlassResponse:
        """End an access."""
        access = await self._accesses.end(fields.uuid_of(request.access_id, "access_id"))
        self._changed(ChatId(access.id))
        return api.EndBreakGlassResponse(access=access_to_proto(access))

"""Methods that search what was written."""

from chatd.chats.rpc.convert import ROLE
from chatd.chats.rpc.methods import ChatMethods, Context
from chatd.chats.store.text_search.hits import Hit
from chatd.primitives.domain.errors import InvalidRequest
from chatd.primitives.rpc.times import time_to_proto
from chatd.users.rpc.callers import caller_as_reader
from parley.api.chat.v1 import chat_service_pb2 as api
from parley.api.chat.v1 import message_pb2

HITS = 20


class SearchMethods(ChatMethods):
    """Searches for callers, in what they may read."""

    async def SearchMessages(
        self, request: api.SearchMessagesRequest, context: Context
    ) -> api.SearchMessagesResponse:
        """Return a page of hits."""
        if "\0" in request.query:
            raise InvalidRequest("query", "contains a NUL character")
        page = await self._stores.search.page(
            await caller_as_reader(self._groups),
            request.query,
            chat_id=request.chat_id,
            length=request.page_size or HITS,
            token=request.page_token,
        )
        return api.SearchMessagesResponse(
            hits=map(_hit_to_proto, page.hits), next_page_token=page.next_token
        )


def _hit_to_proto(hit: Hit) -> api.SearchHit:
    return api.SearchHit(
        chat_id=hit.chat_id,
        root_chat_id=hit.root_chat_id,
        owner_id=hit.owner_id,
        title=hit.title,
        archived=hit.is_archived,
        message_id=hit.message_id or 0,
        role=message_pb2.ROLE_UNSPECIFIED if hit.role is None else ROLE[hit.role],
        at=time_to_proto(hit.at),
        excerpt=[api.ExcerptPart(text=text, match=match) for text, match in hit.excerpt],
    )

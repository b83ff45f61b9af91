"""ContextService over a real socket and database: what is told, and who may ask."""

from parley.api.chat.v1 import context_service_pb2 as api
from support.chatd.chats.served_chats import ServedChats


async def test_nobody_but_the_owner_reads_or_refreshes_the_context_of_a_chat(
    served: ServedChats,
) -> None:
    chat = await served.ann.create("hello")
    requests = (
        api.GetChatContextRequest(chat_id=chat.id),
        api.RefreshInstructionsRequest(request_id="r", chat_id=chat.id),
    )
    for request in requests:
        assert (await served.bob.refusal(request)).reason == "CHAT_NOT_FOUND"
    assert await served.pool.fetchval("SELECT count(*) FROM chat.chat_instructions") == 0


async def test_a_refresh_pins_the_files_and_tells_the_context(served: ServedChats) -> None:
    chat = await served.ann.create("h" * 400)
    before = await served.ann.ask(api.GetChatContextRequest(chat_id=chat.id))
    assert before.context.instructions_version == 0
    (history,) = (
        part.tokens for part in before.context.parts if part.kind == api.CONTEXT_PART_KIND_HISTORY
    )
    assert history == 100
    request = api.RefreshInstructionsRequest(request_id="r", chat_id=chat.id)
    first = await served.ann.ask(request)
    again = await served.ann.ask(request)
    assert first == again
    assert first.context.instructions_version == 1
    after = await served.ann.ask(api.GetChatContextRequest(chat_id=chat.id))
    assert after.context == first.context

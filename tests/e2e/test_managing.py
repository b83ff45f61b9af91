"""A chat's whole life through the typed client, in a real stack."""

import asyncio

import pytest

from parley.client import ChatFilter, ChatStatus, NotFound, Parley, connect
from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow


async def until_status(parley: Parley, chat_id: str, status: ChatStatus) -> None:
    async with asyncio.timeout(120):
        while (await parley.get_chat(chat_id)).status is not status:
            pass


async def test_a_chat_is_queued_edited_interrupted_compacted_archived_and_deleted(
    stack: LocalStack,
) -> None:
    scopes = ("--scope", "chat:read", "--scope", "chat:write")
    issued = stack.parley("token", "issue", "managing", *scopes)
    assert issued.returncode == 0, issued.stderr
    addresses = stack.endpoints()["grpc"]["chatd"]
    async with connect(*addresses, token=issued.stdout.strip()) as parley:
        chat = await parley.create_chat("count to 500")
        first = await parley.send_message(chat.id, "count to 3")
        second = await parley.send_message(chat.id, "count to 4")
        assert first.queued is not None
        assert second.queued is not None
        await parley.manage.drop_queued(chat.id, first.queued.id)
        promoted = await parley.manage.promote_queued(chat.id, second.queued.id)
        assert promoted.status in (ChatStatus.INTERRUPTING, ChatStatus.RUNNING)
        await until_status(parley, chat.id, ChatStatus.WAITING)
        page = await parley.list_messages(chat.id)
        assert [message.text for message in page.messages[:2]] == ["1 2 3 4 ", "count to 4"]

        await parley.manage.edit_message(chat.id, 1, "count to 500")
        stopped = await parley.interrupt(chat.id)
        assert stopped.status in (ChatStatus.INTERRUPTING, ChatStatus.WAITING)
        await until_status(parley, chat.id, ChatStatus.WAITING)

        await parley.send_message(chat.id, "count to 2")
        await until_status(parley, chat.id, ChatStatus.WAITING)
        await parley.manage.compact(chat.id)
        await until_status(parley, chat.id, ChatStatus.WAITING)

        # A copy has no deleted messages, and answers that another chat paid for.
        forked = await asyncio.to_thread(stack.parley, "fork", chat.id)
        assert forked.returncode == 0, forked.stderr
        assert (await asyncio.to_thread(stack.parley, "audit")).returncode == 0
        await parley.manage.set_archived(chat.id, True)
        archived = await parley.manage.list_chats(ChatFilter(archived=True), page_size=200)
        assert chat.id in {each.id for each in archived.chats}
        await parley.manage.delete_chat(chat.id)
        with pytest.raises(NotFound):
            await parley.get_chat(chat.id)
    assert stack.parley("audit").returncode == 0

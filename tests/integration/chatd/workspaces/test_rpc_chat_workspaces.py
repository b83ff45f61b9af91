"""Which workspace a chat works in."""

import asyncio

import pytest

from chatd.primitives.domain.ids import ChatId, Owner
from chatd.workspaces.domain.errors import WorkspaceNotReady
from chatd.workspaces.domain.ports import WorkspaceLocation
from support.chatd.chats.chat_people import ANN_ID
from support.chatd.chats.served_chats import ServedChats
from support.chatd.workspaces.catalogue_calls import create
from support.chatd.workspaces.served_catalogue import ADDRESS, Catalogue


async def test_a_chat_gets_a_scratch_workspace_with_its_first_tool_and_keeps_it(
    served: ServedChats, catalogue: Catalogue
) -> None:
    chat_id = ChatId((await served.ann.create()).id)
    ann, locator = Owner(ANN_ID, "member"), catalogue.locator
    assert await locator.locate_for_turn(chat_id) == WorkspaceLocation(ADDRESS, chat_id)
    assert (await catalogue.store.of_chat(chat_id)).workspace is None  # type: ignore[union-attr]
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(catalogue.driver.run())
        both = [tasks.create_task(locator.ensure_ready(chat_id, ann)) for _ in range(2)]
        await asyncio.wait(both)
        location = both[0].result()
        assert [each.result() for each in both] == [WorkspaceLocation(ADDRESS, chat_id, 1)] * 2
        # The next turn offers the same, and works there after one look.
        assert await locator.locate_for_turn(chat_id) == location
        assert await locator.ensure_ready(chat_id, ann) == location
        # Stopped meanwhile, it is started without asking anybody.
        await catalogue.control.stop(chat_id)
        await catalogue.control.settled(chat_id, 20.0)
        await locator.locate_for_turn(chat_id)
        assert await locator.ensure_ready(chat_id, ann) == WorkspaceLocation(ADDRESS, chat_id, 2)
        running.cancel()
    assert set(catalogue.bound) == {chat_id}


async def test_a_chat_works_in_the_workspace_that_was_made_for_it(
    served: ServedChats, catalogue: Catalogue
) -> None:
    chat_id = ChatId((await served.ann.create()).id)
    await served.finish(chat_id)
    ann, locator = Owner(ANN_ID, "member"), catalogue.locator
    made = (await create(served.ann, chat_id=chat_id)).workspace
    assert catalogue.bound == [chat_id]
    assert (await served.ann.get(chat_id)).workspace_id == made.workspace_id
    await catalogue.drive()
    assert await locator.locate_for_turn(chat_id) == WorkspaceLocation(
        ADDRESS, made.workspace_id, 1
    )
    assert await locator.ensure_ready(chat_id, ann) == WorkspaceLocation(
        ADDRESS, made.workspace_id, 1
    )
    told = await locator.workspace_text(chat_id, is_child=False)
    assert told.startswith(f"This chat has the workspace {made.name} (kind scratch")
    assert await locator.locate_for_turn(chat_id) == WorkspaceLocation(
        ADDRESS, made.workspace_id, 1
    )
    child = ChatId(await served.add_child(chat_id))
    assert await locator.locate_for_turn(child) == WorkspaceLocation(ADDRESS, made.workspace_id, 1)

    await catalogue.control.stop(made.workspace_id)
    await catalogue.drive()
    await locator.locate_for_turn(chat_id)
    with pytest.raises(WorkspaceNotReady) as refused:
        await locator.ensure_ready(chat_id, ann)
    assert refused.value.next_step == "start_workspace"

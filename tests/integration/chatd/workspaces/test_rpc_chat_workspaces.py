"""Which workspace a chat works in."""

import asyncio

import pytest

from chatd.primitives.domain.ids import ChatId, Owner
from chatd.workspaces.domain.errors import WorkspaceNotReady
from chatd.workspaces.domain.ports import Site
from support.chatd.chats.chat_people import ANN_ID
from support.chatd.chats.served_chats import ServedChats
from support.chatd.workspaces.catalogue_calls import create
from support.chatd.workspaces.served_catalogue import ADDRESS, Catalogue


async def test_a_chat_gets_a_scratch_workspace_with_its_first_tool_and_keeps_it(
    served: ServedChats, catalogue: Catalogue
) -> None:
    chat_id = ChatId((await served.ann.create()).id)
    ann, sites = Owner(ANN_ID, "member"), catalogue.sites
    assert await sites.begin(chat_id) == Site(ADDRESS, chat_id)
    assert (await catalogue.store.of_chat(chat_id)).workspace is None  # type: ignore[union-attr]
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(catalogue.driver.run())
        both = [tasks.create_task(sites.ready(chat_id, ann)) for _ in range(2)]
        await asyncio.wait(both)
        site = both[0].result()
        assert [each.result() for each in both] == [Site(ADDRESS, chat_id, 1)] * 2
        # The next turn offers the same, and works there after one look.
        assert await sites.begin(chat_id) == site
        assert await sites.ready(chat_id, ann) == site
        # Stopped meanwhile, it is started without asking anybody.
        await catalogue.control.stop(chat_id)
        await catalogue.control.settled(chat_id, 20.0)
        await sites.begin(chat_id)
        assert await sites.ready(chat_id, ann) == Site(ADDRESS, chat_id, 2)
        running.cancel()
    assert set(catalogue.bound) == {chat_id}


async def test_a_chat_works_in_the_workspace_that_was_made_for_it(
    served: ServedChats, catalogue: Catalogue
) -> None:
    chat_id = ChatId((await served.ann.create()).id)
    ann, sites = Owner(ANN_ID, "member"), catalogue.sites
    made = (await create(served.ann, chat_id=chat_id)).workspace
    assert catalogue.bound == [chat_id]
    assert (await served.ann.get(chat_id)).workspace_id == made.workspace_id
    await catalogue.drive()
    assert await sites.begin(chat_id) == Site(ADDRESS, made.workspace_id, 1)
    assert await sites.ready(chat_id, ann) == Site(ADDRESS, made.workspace_id, 1)
    told = await sites.awareness(chat_id, is_child=False)
    assert told.startswith(f"This chat has the workspace {made.name} (kind scratch")
    assert await sites.begin(chat_id) == Site(ADDRESS, made.workspace_id, 1)
    child = ChatId(await served.add_child(chat_id))
    assert await sites.begin(child) == Site(ADDRESS, made.workspace_id, 1)

    await catalogue.control.stop(made.workspace_id)
    await catalogue.drive()
    await sites.begin(chat_id)
    with pytest.raises(WorkspaceNotReady) as refused:
        await sites.ready(chat_id, ann)
    assert refused.value.next_step == "start_workspace"

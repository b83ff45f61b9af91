"""Another workspace for a chat: between turns, never during one."""

import asyncio

import pytest

from chatd.chats.store.owner_claims import HOLD_CLAIM
from chatd.workspaces.domain.templates import SCRATCH_ID
from parley.api.chat.v1 import chat_pb2
from parley.api.chat.v1 import chat_service_pb2 as api
from parley.api.workspace.v1 import workspace_service_pb2 as workspace_api
from support.chatd.chats.served_chats import ServedChats
from support.chatd.workspaces.stored_workspaces import HASH, LIMITS
from support.chatd.workspaces.workspace_values import WORKSPACE, workspace

AT_WORK = ("running", "interrupting", "requires_action")
WAITING_FOR_LOCKS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


@pytest.fixture
async def chat_id(served: ServedChats) -> str:
    """Give a chat at rest, beside a workspace of its owner."""
    await served.catalogue.store.add(workspace(), HASH, LIMITS)
    chat = await served.ann.create()
    await served.finish(chat.id)
    return chat.id


def switch(chat_id: str, workspace_id: str = WORKSPACE) -> api.UpdateChatRequest:
    chat = chat_pb2.Chat(id=chat_id, title="moved", workspace_id=workspace_id)
    request = api.UpdateChatRequest(request_id="u", chat=chat)
    request.update_mask.paths.extend(["title", "workspace_id"])
    return request


async def test_another_workspace_is_refused_during_a_turn(
    served: ServedChats, chat_id: str
) -> None:
    await served.ann.send(chat_id)
    problem = await served.ann.refusal(switch(chat_id))
    refused = await served.ann.get(chat_id)
    same = (await served.ann.ask(switch(chat_id, ""))).chat
    await served.finish(chat_id)
    switched = (await served.ann.ask(switch(chat_id))).chat

    assert (problem.reason, problem.metadata["status"]) == ("TRANSITION_NOT_ALLOWED", "running")
    assert (refused.title == "moved", refused.workspace_id) == (False, "")
    assert (same.title, same.workspace_id) == ("moved", "")
    assert switched.workspace_id == WORKSPACE


@pytest.mark.parametrize("status", AT_WORK)
async def test_an_agent_at_work_in_the_workspace_keeps_it(
    served: ServedChats, chat_id: str, status: str
) -> None:
    agent = await served.add_child(chat_id, status)
    problem = await served.ann.refusal(switch(chat_id))
    # An agent with a workspace of its own is not moved with the chat.
    own = "UPDATE chat.chats SET workspace_id = $1 WHERE id = $1"
    await served.pool.execute(own, agent)
    switched = (await served.ann.ask(switch(chat_id))).chat

    assert problem.reason == "TRANSITION_NOT_ALLOWED"
    assert problem.metadata == {"status": status, "chat_id": agent}
    assert problem.message.startswith("An agent of the chat works in its workspace.")
    assert switched.workspace_id == WORKSPACE


async def test_an_agent_at_rest_is_moved_with_its_chat(served: ServedChats, chat_id: str) -> None:
    await served.add_child(chat_id)
    assert (await served.ann.ask(switch(chat_id))).chat.workspace_id == WORKSPACE


async def test_a_message_waits_for_a_switch_that_is_under_way(
    served: ServedChats, chat_id: str
) -> None:
    held = "SELECT 1 FROM chat.chats WHERE id = $1 FOR UPDATE"
    async with (
        asyncio.timeout(10),
        served.pool.acquire() as connection,
        asyncio.TaskGroup() as tasks,
        connection.transaction(),
    ):
        # The switch has locked the execution, and waits for the chat itself.
        await connection.execute(held, chat_id)
        switching = tasks.create_task(served.ann.ask(switch(chat_id)))
        while await served.pool.fetchval(WAITING_FOR_LOCKS) < 1:
            pass
        sending = tasks.create_task(served.ann.send(chat_id))
        while await served.pool.fetchval(WAITING_FOR_LOCKS) < 2:
            pass
    await sending

    assert switching.result().chat.workspace_id == WORKSPACE
    assert (await served.ann.get(chat_id)).status == chat_pb2.CHAT_STATUS_RUNNING


async def test_a_turn_that_binds_its_chat_meanwhile_keeps_its_workspace(
    served: ServedChats, chat_id: str
) -> None:
    bind = "UPDATE chat.chats SET workspace_id = $2 WHERE id = $1"
    await served.ann.send(chat_id)
    async with (
        asyncio.timeout(10),
        served.pool.acquire() as connection,
        asyncio.TaskGroup() as tasks,
        connection.transaction(),
    ):
        # As the turn does: it holds its claim, and then binds the chat.
        state = await served.state(chat_id)
        await connection.execute(HOLD_CLAIM, chat_id, state.owner_epoch, state.turn_id)
        switching = tasks.create_task(served.ann.refusal(switch(chat_id, "")))
        while await served.pool.fetchval(WAITING_FOR_LOCKS) < 1:
            pass
        await connection.execute(bind, chat_id, WORKSPACE)
    after = await served.ann.get(chat_id)

    assert switching.result().reason == "TRANSITION_NOT_ALLOWED"
    assert (after.title == "moved", after.workspace_id) == (False, WORKSPACE)


async def test_a_new_workspace_for_a_chat_in_a_turn_is_refused_and_not_made(
    served: ServedChats, chat_id: str
) -> None:
    request = workspace_api.CreateWorkspaceRequest(
        request_id="w", template_id=SCRATCH_ID, name="new", chat_id=chat_id
    )
    await served.ann.send(chat_id)
    problem = await served.ann.refusal(request)
    before = await served.ann.ask(workspace_api.ListWorkspacesRequest())
    await served.finish(chat_id)
    made = (await served.ann.ask(request)).workspace
    await served.ann.send(chat_id)
    # The same request is answered again, whatever the chat does.
    again = (await served.ann.ask(request)).workspace

    assert problem.reason == "TRANSITION_NOT_ALLOWED"
    assert "new" not in [each.name for each in before.workspaces]
    assert (await served.ann.get(chat_id)).workspace_id == made.workspace_id
    assert again.workspace_id == made.workspace_id

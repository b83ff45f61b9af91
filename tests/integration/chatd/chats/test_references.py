"""Ids in requests: one that names nothing of the caller's is refused, one that is stored passes."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import grpc
import pytest

from chatd.primitives.domain.ids import ChatId
from chatd.users.domain.grantees import Grantee, GranteeKind
from chatd.workspaces.domain.workspace import State, WorkspaceId
from parley.api.chat.v1 import chat_pb2, usage_pb2
from parley.api.chat.v1 import chat_service_pb2 as api
from parley.api.chat.v1 import usage_service_pb2 as usage_api
from parley.api.workspace.v1 import secret_service_pb2 as secret_api
from parley.api.workspace.v1 import template_pb2
from parley.api.workspace.v1 import workspace_service_pb2 as workspace_api
from parley.rpc import Violation
from support.chatd.chats.chat_people import BOB_ID, EVES_GROUP, Person, text
from support.chatd.chats.chat_requests import create, file_part, update
from support.chatd.chats.served_chats import ServedChats
from support.chatd.workspaces.stored_workspaces import HASH, LIMITS
from support.chatd.workspaces.workspace_values import WORKSPACE, workspace

ABSENT = "00000000-0000-0000-0000-0000000000f7"
BOBS_WORKSPACE = WorkspaceId("00000000-0000-0000-0000-0000000000b7")
SERVER = "00000000-0000-0000-0000-0000000000c1"


def limit(**subject: str) -> usage_api.SetSpendLimitRequest:
    given = usage_pb2.SpendLimit(
        limit_micros=1,
        period=usage_pb2.LIMIT_PERIOD_DAY,
        **subject,  # type: ignore[arg-type]
    )
    return usage_api.SetSpendLimitRequest(request_id="r", limit=given)


def templated(*group_ids: str) -> workspace_api.CreateTemplateRequest:
    made = template_pb2.Template(
        name="t", kind=template_pb2.WORKSPACE_KIND_SCRATCH, group_ids=group_ids
    )
    made.scratch.SetInParent()
    return workspace_api.CreateTemplateRequest(request_id="t", template=made)


# What is asked with the id of a chat of Ann's, how it is refused, and where the fault is.
Case = tuple[Callable[[str], Any], str, str]
UNKNOWN: dict[str, Case] = {
    "workspace of a new chat": (
        lambda chat: create(workspace_id=ABSENT),
        "UNKNOWN_ID",
        "workspace_id",
    ),
    "somebody else's workspace of a new chat": (
        lambda chat: create(workspace_id=BOBS_WORKSPACE),
        "UNKNOWN_ID",
        "workspace_id",
    ),
    "workspace of a chat": (
        lambda chat: update(chat, workspace_id=ABSENT),
        "UNKNOWN_ID",
        "chat.workspace_id",
    ),
    "somebody else's workspace of a chat": (
        lambda chat: update(chat, workspace_id=BOBS_WORKSPACE),
        "UNKNOWN_ID",
        "chat.workspace_id",
    ),
    "server of a new chat": (
        lambda chat: create(mcp_server_ids=[SERVER, ABSENT]),
        "UNKNOWN_ID",
        "mcp_server_ids[1]",
    ),
    "server of a chat": (
        lambda chat: update(chat, mcp_server_ids=[ABSENT]),
        "UNKNOWN_ID",
        "chat.mcp_server_ids[0]",
    ),
    "file of a new chat": (
        lambda chat: api.CreateChatRequest(request_id="r", content=[file_part(ABSENT)]),
        "FILE_NOT_FOUND",
        "content[0].file.file_id",
    ),
    "file of a message": (
        lambda chat: api.SendMessageRequest(
            request_id="r", chat_id=chat, content=[file_part(ABSENT)]
        ),
        "FILE_NOT_FOUND",
        "content[0].file.file_id",
    ),
    "message to edit": (
        lambda chat: api.EditMessageRequest(
            request_id="r", chat_id=chat, message_id=99, content=[text("x")]
        ),
        "MESSAGE_NOT_FOUND",
        "",
    ),
    "queued message to drop": (
        lambda chat: api.DeleteQueuedMessageRequest(
            request_id="r", chat_id=chat, queued_message_id=ABSENT
        ),
        "QUEUED_MESSAGE_NOT_FOUND",
        "",
    ),
    "queued message to promote": (
        lambda chat: api.PromoteQueuedMessageRequest(
            request_id="r", chat_id=chat, queued_message_id=ABSENT
        ),
        "QUEUED_MESSAGE_NOT_FOUND",
        "",
    ),
    "user to share with": (
        lambda chat: api.SetSharesRequest(
            request_id="r",
            chat_id=chat,
            shares=[api.Share(user_id=BOB_ID), api.Share(user_id=ABSENT)],
        ),
        "UNKNOWN_ID",
        "shares[1].user_id",
    ),
    "group to share with": (
        lambda chat: api.SetSharesRequest(
            request_id="r", chat_id=chat, shares=[api.Share(group_id=BOB_ID)]
        ),
        "UNKNOWN_ID",
        "shares[0].group_id",
    ),
    "user of a spend limit": (lambda chat: limit(user_id=ABSENT), "UNKNOWN_ID", "limit.user_id"),
    "group of a spend limit": (lambda chat: limit(group_id=ABSENT), "UNKNOWN_ID", "limit.group_id"),
    "group of a template": (
        lambda chat: templated(EVES_GROUP, ABSENT),
        "UNKNOWN_ID",
        "template.group_ids[1]",
    ),
    "template of a workspace": (
        lambda chat: workspace_api.CreateWorkspaceRequest(request_id="r", template_id=ABSENT),
        "TEMPLATE_NOT_FOUND",
        "",
    ),
    "chat of a workspace": (
        lambda chat: workspace_api.CreateWorkspaceRequest(
            request_id="r", template_id=ABSENT, chat_id=ABSENT
        ),
        "UNKNOWN_ID",
        "chat_id",
    ),
    "secret of a workspace": (
        lambda chat: workspace_api.CreateWorkspaceRequest(
            request_id="r", template_id=ABSENT, secret_names=["token"]
        ),
        "SECRET_NOT_FOUND",
        "",
    ),
    "secret to grant": (
        lambda chat: secret_api.SetGrantsRequest(
            request_id="r", workspace_id=WORKSPACE, secret_names=["token"]
        ),
        "SECRET_NOT_FOUND",
        "",
    ),
    "chat of a fork": (
        lambda chat: workspace_api.ForkWorkspaceRequest(
            request_id="r", source_workspace_id=WORKSPACE, chat_id=ABSENT
        ),
        "UNKNOWN_ID",
        "chat_id",
    ),
    "somebody else's workspace to fork": (
        lambda chat: workspace_api.ForkWorkspaceRequest(
            request_id="r", source_workspace_id=BOBS_WORKSPACE
        ),
        "WORKSPACE_NOT_FOUND",
        "",
    ),
    "mode of a fork": (
        lambda chat: workspace_api.ForkWorkspaceRequest(
            request_id="r",
            source_workspace_id=WORKSPACE,
            mode=99,  # type: ignore[arg-type]
        ),
        "INVALID_REQUEST",
        "mode",
    ),
    "strategy of a merge": (
        lambda chat: workspace_api.MergeForkRequest(
            request_id="r",
            fork_workspace_id=WORKSPACE,
            strategy=99,  # type: ignore[arg-type]
        ),
        "INVALID_REQUEST",
        "strategy",
    ),
    "state of listed workspaces": (
        lambda chat: workspace_api.ListWorkspacesRequest(
            states=[99],  # type: ignore[list-item]
        ),
        "INVALID_REQUEST",
        "states[0]",
    ),
}


@pytest.mark.parametrize("named", UNKNOWN)
async def test_an_id_that_names_nothing_is_refused(
    served: ServedChats, admin: Person, named: str
) -> None:
    asks, reason, field = UNKNOWN[named]
    store = served.catalogue.store
    await store.add(workspace(), HASH, LIMITS)
    await store.add(workspace(id=BOBS_WORKSPACE, owner_id=BOB_ID), HASH, LIMITS)
    served.servers.enabled.add(SERVER)
    chat = await served.ann.create()
    request = asks(chat.id)
    is_admins = isinstance(
        request, usage_api.SetSpendLimitRequest | workspace_api.CreateTemplateRequest
    )
    before = await written(served)
    refused = await (admin if is_admins else served.ann).refusal(request)
    assert (refused.reason, [each.field for each in refused.violations]) == (
        reason,
        [field] if field else [],
    )
    assert await written(served) == before


async def written(served: ServedChats) -> list[int]:
    """Count what requests of this table could have written."""
    tables = (
        "chats",
        "chat_messages",
        "chat_shares",
        "client_keys",
        "spend_limits",
        "workspaces",
        "templates",
    )
    counts = [await served.pool.fetchval(f"SELECT count(*) FROM chat.{each}") for each in tables]
    chosen = await served.pool.fetchval(
        "SELECT count(*) FROM chat.chats WHERE workspace_id IS NOT NULL OR mcp_server_ids <> '{}'"
    )
    return [*counts, chosen]


async def test_unknown_and_foreign_workspaces_are_refused_alike(served: ServedChats) -> None:
    theirs = workspace(id=BOBS_WORKSPACE, owner_id=BOB_ID)
    await served.catalogue.store.add(theirs, HASH, LIMITS)
    foreign = await served.ann.refusal(create(workspace_id=BOBS_WORKSPACE))
    assert foreign == await served.ann.refusal(create(workspace_id=ABSENT))
    assert foreign.status is grpc.StatusCode.INVALID_ARGUMENT


async def test_every_unknown_share_is_named_at_once(served: ServedChats) -> None:
    chat = await served.ann.create()
    shares = [api.Share(user_id=ABSENT), api.Share(user_id=BOB_ID), api.Share(group_id=ABSENT)]
    refused = await served.ann.refusal(
        api.SetSharesRequest(request_id="s", chat_id=chat.id, shares=shares)
    )
    assert refused.violations == (
        Violation("shares[0].user_id", "names no user"),
        Violation("shares[2].group_id", "names no group"),
    )


async def test_every_unknown_id_of_a_chat_is_named_at_once(served: ServedChats) -> None:
    served.servers.enabled.add(SERVER)
    given = {"workspace_id": ABSENT, "mcp_server_ids": [ABSENT, SERVER, BOB_ID]}
    refused = await served.ann.refusal(create(**given))
    assert (refused.reason, refused.metadata["resource"]) == (
        "UNKNOWN_ID",
        "workspace or MCP server",
    )
    names = ["workspace_id", "mcp_server_ids[0]", "mcp_server_ids[2]"]
    assert [each.field for each in refused.violations] == names
    chat = await served.ann.create()
    refused = await served.ann.refusal(update(chat.id, **given))
    assert [each.field for each in refused.violations] == [f"chat.{each}" for each in names]
    # What is wrong in any case is told, though the servers cannot be asked for.
    served.servers.is_available = False
    refused = await served.ann.refusal(update(chat.id, **given))
    assert [each.field for each in refused.violations] == ["chat.workspace_id"]


async def test_what_a_chat_has_already_passes_when_it_is_gone(served: ServedChats) -> None:
    store = served.catalogue.store
    await store.add(workspace(), HASH, LIMITS)
    served.servers.enabled.add(SERVER)
    grantee = Grantee(GranteeKind.GROUP, ABSENT)
    served.grantees.grantees.add(grantee)
    request = create(workspace_id=WORKSPACE, mcp_server_ids=[SERVER])
    chat = (await served.ann.ask(request)).chat
    sharing = api.SetSharesRequest(
        request_id="s", chat_id=chat.id, shares=[api.Share(group_id=ABSENT)]
    )
    await served.ann.ask(sharing)

    await served.pool.execute("DELETE FROM chat.workspaces WHERE id = $1", WORKSPACE)
    served.servers.enabled.clear()
    served.grantees.grantees.remove(grantee)
    served.servers.is_available = served.grantees.is_available = False
    kept = (
        await served.ann.ask(
            update(chat.id, title="still", workspace_id=WORKSPACE, mcp_server_ids=[SERVER])
        )
    ).chat
    assert (kept.title, kept.workspace_id, list(kept.mcp_server_ids)) == (
        "still",
        WORKSPACE,
        [SERVER],
    )
    assert len((await served.ann.ask(sharing)).shares) == 1
    # The same request again is answered as before, too.
    assert (await served.ann.ask(request)).chat.id == chat.id


GONE = {
    "removed": "DELETE FROM chat.workspaces WHERE id = $1",
    "deleted": "UPDATE chat.workspaces SET state = 'deleted' WHERE id = $1",
    "being deleted": "UPDATE chat.workspaces SET state = 'stopping', is_removing = true, "
    "node_id = id WHERE id = $1",
}


@pytest.mark.parametrize("how", GONE)
async def test_a_chat_whose_workspace_is_gone_works_in_its_scratch_one(
    served: ServedChats, how: str
) -> None:
    store = served.catalogue.store
    await store.add(workspace(), HASH, LIMITS)
    chat = await served.ann.create(workspace_id=WORKSPACE)
    await served.pool.execute(GONE[how], WORKSPACE)
    scratch = replace(workspace(), id=WorkspaceId(chat.id), name="scratch", is_scratch_of_chat=True)
    await store.add_scratch(scratch, served.catalogue.driver.driver_id, 15.0)
    found = await store.of_chat(ChatId(chat.id))
    assert found is not None
    assert (found.workspace, found.is_bound) == (scratch, False)


async def test_a_deleted_workspace_cannot_be_chosen(served: ServedChats) -> None:
    await served.catalogue.store.add(workspace(), HASH, LIMITS)
    await served.pool.execute(
        "UPDATE chat.workspaces SET state = $2 WHERE id = $1", WORKSPACE, State.DELETED
    )
    refused = await served.ann.refusal(create(workspace_id=WORKSPACE))
    assert refused.reason == "UNKNOWN_ID"


@pytest.mark.parametrize(
    "request_", [create(mcp_server_ids=[SERVER]), "shares"], ids=["servers", "shares"]
)
async def test_what_cannot_be_checked_now_is_refused_for_now(
    served: ServedChats, request_: Any
) -> None:
    chat = await served.ann.create()
    served.servers.is_available = served.grantees.is_available = False
    if request_ == "shares":
        request_ = api.SetSharesRequest(
            request_id="s", chat_id=chat.id, shares=[api.Share(user_id=BOB_ID)]
        )
    refused = await served.ann.refusal(request_)
    assert (refused.status, refused.reason) == (
        grpc.StatusCode.UNAVAILABLE,
        "CHECK_UNAVAILABLE",
    )
    assert refused.retry_after_s


async def test_a_limit_can_be_taken_away_from_whom_is_gone(
    served: ServedChats, admin: Person
) -> None:
    gone = limit(user_id=BOB_ID)
    await admin.ask(gone)
    served.grantees.grantees.clear()
    gone.limit.limit_micros = 2
    await admin.ask(gone)
    gone.limit.limit_micros = 0
    await admin.ask(gone)
    assert (await admin.refusal(limit(user_id=BOB_ID))).reason == "UNKNOWN_ID"


async def test_a_message_can_choose_servers_and_keeps_them_without_a_word(
    served: ServedChats,
) -> None:
    served.servers.enabled.add(SERVER)
    chat = (await served.ann.ask(create())).chat
    assert (chat.uses_default_mcp_servers, list(chat.mcp_server_ids)) == (True, [])

    async def sent(key: str, *server_ids: str, chooses: bool = True) -> Any:
        request = api.SendMessageRequest(request_id=key, chat_id=chat.id, content=[text("go on")])
        if chooses:
            request.mcp_servers.SetInParent()
            request.mcp_servers.mcp_server_ids.extend(server_ids)
        await served.ann.ask(request)
        got = await served.ann.get(chat.id)
        return (got.uses_default_mcp_servers, list(got.mcp_server_ids))

    assert await sent("a", chooses=False) == (True, [])
    assert await sent("b", SERVER) == (False, [SERVER])
    assert await sent("c", chooses=False) == (False, [SERVER])
    assert await sent("d") == (False, [])
    # A repetition of an earlier message does not choose again.
    assert await sent("b", SERVER) == (False, [])
    refused = await served.ann.refusal(
        api.SendMessageRequest(
            request_id="e",
            chat_id=chat.id,
            content=[text("x")],
            mcp_servers=chat_pb2.McpServerChoice(mcp_server_ids=[ABSENT]),
        )
    )
    assert refused.reason == "UNKNOWN_ID"


async def test_a_new_chat_can_use_no_servers_at_all(served: ServedChats) -> None:
    chat = (await served.ann.ask(create(mcp_servers=chat_pb2.McpServerChoice()))).chat
    assert (chat.uses_default_mcp_servers, list(chat.mcp_server_ids)) == (False, [])

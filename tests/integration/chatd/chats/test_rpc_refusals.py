"""What every method refuses: chats of others, malformed requests."""

import asyncio
import uuid
from dataclasses import replace
from typing import Any

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from parley.api.chat.v1 import chat_pb2, chat_service_pb2, message_pb2
from parley.api.chat.v1 import chat_service_pb2 as api
from parley.rpc import Problem
from support.chatd.chats.chat_people import BOB_ID, EVES_GROUP, Person, text
from support.chatd.chats.served_chats import ServedChats

ABSENT = "00000000-0000-0000-0000-00000000dead"
METHODS = [
    method.name for method in chat_service_pb2.DESCRIPTOR.services_by_name["ChatService"].methods
]
WITHOUT_CHAT = {"CreateChat", "ListChats", "SearchMessages"}
ABOUT_CHAT = [name for name in METHODS if name not in WITHOUT_CHAT]
READS = {"GetChat", "GetMessage", "ListMessages", "ListPrompts", "ListTodos", "ExportChat"}
CHANGES = [
    name for name in METHODS if name not in READS | {"ListChats", "SearchMessages", "GetShares"}
]


def well_formed(method: str, chat_id: str) -> Any:
    """Return a request that an owner could make."""
    given_for: dict[str, dict[str, Any]] = {
        "CreateChat": {"content": [text("hi")]},
        "UpdateChat": {
            "chat": chat_pb2.Chat(id=chat_id, title="x"),
            "update_mask": FieldMask(paths=["title"]),
        },
        "SetArchived": {"archived": True},
        "SendMessage": {"content": [text("hi")]},
        "EditMessage": {"content": [text("hi")], "message_id": 1},
        "GetMessage": {"message_id": 1},
        "DeleteQueuedMessage": {"queued_message_id": ABSENT},
        "PromoteQueuedMessage": {"queued_message_id": ABSENT},
        "UpdateQueuedMessage": {"queued_message_id": ABSENT, "place": 1},
        "SubmitToolResults": {"results": [api.ClientToolResult(tool_call_id="c", output_json="1")]},
        "SetShares": {"shares": [api.Share(user_id=ABSENT)]},
    }
    given = given_for.get(method, {})
    kind = getattr(api, f"{method}Request")
    if "chat_id" in kind.DESCRIPTOR.fields_by_name and method != "CreateChat":
        given["chat_id"] = chat_id
    if "request_id" in kind.DESCRIPTOR.fields_by_name:
        given["request_id"] = "r"
    return kind(**given)


async def everything(served: ServedChats) -> list[Any]:
    rows = await served.pool.fetch(
        "SELECT c.*, e.* FROM chat.chats c JOIN chat.chat_exec e ON e.chat_id = c.id"
    )
    return [*map(tuple, rows)]


async def test_somebody_elses_chat_looks_like_none(served: ServedChats) -> None:
    chat = await served.ann.create()
    before = await everything(served)
    for method in ABOUT_CHAT:
        theirs = await served.bob.refusal(well_formed(method, chat.id))
        nobodys = await served.bob.refusal(well_formed(method, ABSENT))
        assert theirs == Problem(
            grpc.StatusCode.NOT_FOUND,
            "CHAT_NOT_FOUND",
            "There is no such chat, or you may not see it.",
            {"chat_id": chat.id},
        )
        assert nobodys == replace(theirs, metadata={"chat_id": ABSENT})
    assert await everything(served) == before


@pytest.mark.parametrize("share", [api.Share(user_id=BOB_ID), api.Share(group_id=EVES_GROUP)])
async def test_whom_a_chat_is_shared_with_reads_it_and_does_nothing_else(
    served: ServedChats, share: api.Share
) -> None:
    chat = await served.ann.create()
    await served.ann.ask(api.SetSharesRequest(request_id="s", chat_id=chat.id, shares=[share]))
    reader: Person = served.bob if share.user_id else served.eve
    before = await everything(served)
    assert len(await reader.export(chat.id)) == 3
    for method in ABOUT_CHAT:
        request = well_formed(method, chat.id)
        if method not in READS:
            refused = await reader.refusal(request)
            assert (refused.status, refused.reason) == (
                grpc.StatusCode.PERMISSION_DENIED,
                "CHAT_READ_ONLY",
            ), method
        elif method != "ExportChat":
            await reader.ask(request)
    assert await everything(served) == before


async def test_every_change_needs_a_request_id(served: ServedChats) -> None:
    for method in CHANGES:
        for request_id in ("", "x" * 129, "a\0b"):
            request = well_formed(method, ABSENT)
            request.request_id = request_id
            problem = await served.ann.refusal(request)
            assert (problem.status, problem.reason) == (
                grpc.StatusCode.INVALID_ARGUMENT,
                "INVALID_REQUEST",
            )
            assert problem.metadata == {"field": "request_id"}
            assert [violation.field for violation in problem.violations] == ["request_id"]


async def test_a_chat_id_that_is_none_is_refused_by_name(served: ServedChats) -> None:
    for method in ABOUT_CHAT:
        problem = await served.ann.refusal(well_formed(method, "x"))
        field = "chat.id" if method == "UpdateChat" else "chat_id"
        assert (problem.reason, problem.metadata) == ("INVALID_REQUEST", {"field": field})


def reference(**given: Any) -> message_pb2.Part:
    whole: dict[str, Any] = {"file_name": "a", "start_line": 1, "end_line": 2, "content": "x"}
    return message_pb2.Part(file_reference=message_pb2.FileReferencePart(**{**whole, **given}))


def tool(**given: Any) -> chat_pb2.ClientTool:
    return chat_pb2.ClientTool(**{"name": "ask", "input_schema_json": "{}", **given})


IMPOSSIBLE_CHATS: list[tuple[dict[str, Any], str]] = [
    ({"content": []}, "content"),
    ({"content": [text("x")] * 201}, "content"),
    ({"content": [text("x" * 262145)]}, "content"),
    ({"content": [text("x" * 140000)] * 2}, "content"),
    ({"content": [text(" ")]}, "content[0].text.text"),
    ({"content": [text("ok"), text("a\0b")]}, "content[1].text.text"),
    ({"content": [message_pb2.Part()]}, "content[0]"),
    ({"content": [message_pb2.Part(notice=message_pb2.NoticePart(text="x"))]}, "content[0]"),
    ({"content": [message_pb2.Part(file=message_pb2.FilePart())]}, "content[0].file.file_id"),
    ({"content": [reference(file_name="")]}, "content[0].file_reference.file_name"),
    ({"content": [reference(start_line=0)]}, "content[0].file_reference.start_line"),
    ({"content": [reference(start_line=3)]}, "content[0].file_reference.end_line"),
    ({"content": [reference(content="\0")]}, "content[0].file_reference.content"),
    ({"content": [reference(content="x" * 65537)]}, "content[0].file_reference.content"),
    ({"title": "x" * 201}, "title"),
    ({"title": "\0"}, "title"),
    ({"model_id": "x" * 201}, "model_id"),
    ({"model_id": "\0"}, "model_id"),
    ({"reasoning_effort": 99}, "reasoning_effort"),
    ({"mode": 99}, "mode"),
    ({"mode": chat_pb2.CHAT_MODE_EXPLORE}, "mode"),
    ({"workspace_id": "x"}, "workspace_id"),
    ({"mcp_server_ids": ["x"]}, "mcp_server_ids[0]"),
    ({"mcp_server_ids": [ABSENT] * 101}, "mcp_server_ids"),
    ({"labels": {"a": "\0"}}, "labels.a"),
    ({"system_prompt": "\0"}, "system_prompt"),
    ({"system_prompt": "x" * 131073}, "system_prompt"),
    ({"client_tools": [tool(name="a b")]}, "client_tools[0].name"),
    ({"client_tools": [tool(), tool()]}, "client_tools[1].name"),
    ({"client_tools": [tool(name="execute")]}, "client_tools[0].name"),
    ({"client_tools": [tool(name="propose_plan")]}, "client_tools[0].name"),
    ({"client_tools": [tool(name="ask_user_question")]}, "client_tools[0].name"),
    ({"client_tools": [tool(), tool(name="create_workspace")]}, "client_tools[1].name"),
    ({"client_tools": [tool(name="github__create_issue")]}, "client_tools[0].name"),
    (
        {"client_tools": [tool(input_schema_json='{"type": "objekt"}')]},
        "client_tools[0].input_schema_json#/type",
    ),
    (
        {"client_tools": [tool(input_schema_json='{"type": "array"}')]},
        "client_tools[0].input_schema_json#/type",
    ),
    (
        {"client_tools": [tool(input_schema_json='{"properties": {"a": {"type": 5}}}')]},
        "client_tools[0].input_schema_json#/properties/a/type",
    ),
    (
        {"client_tools": [tool(input_schema_json='{"$schema": [], "required": "a"}')]},
        "client_tools[0].input_schema_json#/$schema",
    ),
    ({"client_tools": [tool(description="\0")]}, "client_tools[0].description"),
    ({"client_tools": [tool(input_schema_json="[]")]}, "client_tools[0].input_schema_json"),
    ({"client_tools": [tool(input_schema_json="{")]}, "client_tools[0].input_schema_json"),
    ({"client_tools": [tool(input_schema_json='{"a": NaN}')]}, "client_tools[0].input_schema_json"),
    (
        {"client_tools": [tool(input_schema_json='{"a": 1e400}')]},
        "client_tools[0].input_schema_json",
    ),
    ({"client_tools": [tool()] * 251}, "client_tools"),
    ({"chat_id": ABSENT}, "chat_id"),
]


async def test_a_chat_that_cannot_be_is_refused_by_the_name_of_its_field(
    served: ServedChats,
) -> None:
    for given, field in IMPOSSIBLE_CHATS:
        fields: dict[str, Any] = {"request_id": "r", "content": [text("hi")], **given}
        request = api.CreateChatRequest(**fields)
        problem = await served.ann.refusal(request)
        assert (problem.reason, problem.metadata) == ("INVALID_REQUEST", {"field": field})
    assert await served.pool.fetchval("SELECT count(*) FROM chat.chats") == 0


IMPOSSIBLE_REQUESTS: list[tuple[Any, str]] = [
    (api.SendMessageRequest(busy_behavior=9, content=[text("x")]), "busy_behavior"),  # type: ignore[arg-type]
    (api.SendMessageRequest(content=[text("\0")]), "content[0].text.text"),
    (api.EditMessageRequest(message_id=1, content=[text("\0")]), "content[0].text.text"),
    (api.EditMessageRequest(message_id=-1, content=[text("x")]), "message_id"),
    (api.DeleteQueuedMessageRequest(queued_message_id="x"), "queued_message_id"),
    (api.PromoteQueuedMessageRequest(queued_message_id="\0"), "queued_message_id"),
    (api.InterruptRequest(turn_message_id=-1), "turn_message_id"),
    (api.MarkReadRequest(last_message_id=-1), "last_message_id"),
    (api.SubmitToolResultsRequest(), "results"),
    (
        api.SubmitToolResultsRequest(results=[api.ClientToolResult(tool_call_id="\0")]),
        "results[0].tool_call_id",
    ),
    (
        api.SubmitToolResultsRequest(
            results=[api.ClientToolResult(tool_call_id="c", output_json="\0")]
        ),
        "results[0].output_json",
    ),
    (
        api.SubmitToolResultsRequest(
            results=[api.ClientToolResult(tool_call_id="c", output_json="x" * 262145)]
        ),
        "results[0].output_json",
    ),
]


async def test_a_request_that_cannot_be_is_refused_by_the_name_of_its_field(
    served: ServedChats,
) -> None:
    chat = await served.ann.create()
    before = await everything(served)
    for request, field in IMPOSSIBLE_REQUESTS:
        request.request_id, request.chat_id = "r2", chat.id
        problem = await served.ann.refusal(request)
        assert (problem.reason, problem.metadata) == ("INVALID_REQUEST", {"field": field})
    assert await everything(served) == before


async def test_a_call_that_is_cancelled_still_starts_what_it_claimed(served: ServedChats) -> None:
    chat_id = str(uuid.uuid5(uuid.UUID(served.ann.id), "r"))
    async with served.pool.acquire() as holder, holder.transaction():
        await holder.execute("LOCK TABLE chat.chats IN ACCESS EXCLUSIVE MODE")
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            call = group.create_task(served.ann.create(request_id="r"))
            waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            while not await served.pool.fetchval(waiting):
                await served.pool.execute("SELECT pg_sleep(0.005)")
            call.cancel()
    async with asyncio.timeout(10):
        while not served.claims.started:
            await served.pool.execute("SELECT pg_sleep(0.005)")
    assert [each.state.chat_id for each in served.claims.started] == [chat_id]


def everything_wrong(chat_id: str) -> dict[str, tuple[Any, list[str]]]:
    """Return requests with several faults, and the fields at fault."""
    blank, no_file = text(" "), message_pb2.Part(file=message_pb2.FilePart(file_id="x"))
    return {
        "create": (
            api.CreateChatRequest(
                request_id="wrong",
                content=[blank, text("fine"), no_file],
                workspace_id="mine",
                mcp_server_ids=["x", "y"],
                mode=chat_pb2.CHAT_MODE_EXPLORE,
                client_tools=[
                    chat_pb2.ClientTool(name="a b", input_schema_json="["),
                    chat_pb2.ClientTool(name="execute", input_schema_json='{"type": "object"}'),
                ],
            ),
            [
                "content[0].text.text",
                "content[2].file.file_id",
                "mode",
                "workspace_id",
                "mcp_server_ids[0]",
                "mcp_server_ids[1]",
                "client_tools[0].name",
            ],
        ),
        "update": (
            api.UpdateChatRequest(
                request_id="wrong",
                chat=chat_pb2.Chat(id=chat_id, title=" ", pin_order=-1, workspace_id="mine"),
                update_mask=FieldMask(paths=["title", "pin_order", "workspace_id"]),
            ),
            ["chat.title", "chat.workspace_id", "chat.pin_order"],
        ),
        "share": (
            api.SetSharesRequest(
                request_id="wrong",
                chat_id=chat_id,
                shares=[api.Share(), api.Share(user_id="x"), api.Share(group_id="y")],
            ),
            ["shares[0]", "shares[1].user_id", "shares[2].group_id"],
        ),
        "send": (
            api.SendMessageRequest(
                request_id="wrong", chat_id=chat_id, content=[blank, no_file, blank]
            ),
            ["content[0].text.text", "content[1].file.file_id", "content[2].text.text"],
        ),
    }


@pytest.mark.parametrize("what", ["create", "update", "share", "send"])
async def test_all_that_is_wrong_with_a_request_is_told_at_once(
    served: ServedChats, what: str
) -> None:
    chat = await served.ann.create()
    request, at_fault = everything_wrong(chat.id)[what]

    refused = await served.ann.refusal(request)

    assert (refused.status, refused.reason) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "INVALID_REQUEST",
    )
    assert [each.field for each in refused.violations] == at_fault

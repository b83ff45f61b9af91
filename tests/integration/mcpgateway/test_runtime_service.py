"""The runtime service over gRPC: a real database and a real MCP server."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import grpc
import msgspec
import pytest

from parley.api.mcp.v1 import runtime_service_pb2 as api
from parley.api.mcp.v1 import server_pb2, tool_pb2
from parley.api.mcp.v1 import server_service_pb2 as servers_api
from parley.api.mcp.v1 import tool_service_pb2 as tools_api
from parley.api.mcp.v1.error_reason_pb2 import ErrorReason
from parley.postgres import Database
from parley.rpc import acting_for, problem_of
from support.host.ports import free_port
from support.mcpgateway.gateway import ADMIN, MEMBER, McpGateway, mcp_gateway
from support.mcpgateway.servers import session_process, until_listening
from support.mcpgateway.stored_calls import delete_acknowledged

CHAT = api.ChatContext(chat_id="chat-1", root_chat_id="chat-1")
NOWHERE = "01900000-0000-7000-8000-0000000000ff"


@dataclass(frozen=True, slots=True)
class Demo:
    """The demo's server as chatd finds it."""

    server_id: str
    generation: str
    tool: tool_pb2.McpTool


async def found_demo(gateway: McpGateway) -> Demo:
    """Resolve and list as chatd does."""
    with acting_for(MEMBER):
        selection = await gateway.runtime.ResolveSelection(
            api.ResolveSelectionRequest(context=CHAT)
        )
        (server_id,) = selection.effective_server_ids
        listing = await gateway.runtime.ListTools(
            api.ListToolsRequest(context=CHAT, server_ids=[server_id])
        )
    (tool,) = [each for each in listing.tools if each.original_name == "get_current_time"]
    return Demo(server_id, listing.journal_generation, tool)


def a_key(demo: Demo, execution_id: str = "call-1", owner_epoch: int = 1) -> api.CallKey:
    return api.CallKey(
        execution_id=execution_id,
        chat_id="chat-1",
        owner_epoch=owner_epoch,
        journal_generation=demo.generation,
    )


def a_call(demo: Demo, timezone: str = "UTC", **fields: object) -> api.CallToolRequest:
    given = {
        "key": a_key(demo),
        "context": CHAT,
        "server_id": demo.server_id,
        "original_name": "get_current_time",
        "expected_digest": demo.tool.digest,
        "arguments_json": msgspec.json.encode({"timezone": timezone}),
        **fields,
    }
    return api.CallToolRequest(**given)  # type: ignore[arg-type]


async def events_of(gateway: McpGateway, call: api.CallToolRequest) -> list[api.CallToolResponse]:
    with acting_for(MEMBER):
        return [response async for response in gateway.runtime.CallTool(call, timeout=10)]


async def reason_of(call: "asyncio.Future[object] | object") -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call  # type: ignore[misc]
    problem = problem_of(caught.value)
    return problem.status, problem.reason


async def test_the_demo_is_offered_to_every_chat(gateway: McpGateway) -> None:
    demo = await found_demo(gateway)

    assert demo.tool.model_name == "demo__get_current_time"
    assert msgspec.json.decode(demo.tool.input_schema_json)["required"] == ["timezone"]
    assert (demo.tool.needs_approval, demo.tool.is_repeatable) == (False, True)


async def test_a_call_is_started_and_ends_with_one_result(gateway: McpGateway) -> None:
    demo = await found_demo(gateway)

    started, ended = await events_of(gateway, a_call(demo, "Europe/Berlin"))

    result = ended.result
    (part,) = result.parts
    assert (started.WhichOneof("event"), started.started.is_attached) == ("started", False)
    assert result.outcome == tool_pb2.CALL_OUTCOME_SUCCEEDED
    assert msgspec.json.decode(part.text.text)["timezone"] == "Europe/Berlin"
    assert result.started_at.ToDatetime() <= result.finished_at.ToDatetime()


async def test_an_answer_never_starts_a_call(gateway: McpGateway) -> None:
    demo = await found_demo(gateway)
    answer = tool_pb2.InputAnswer(request_id="r1", action=tool_pb2.INPUT_ACTION_ACCEPT)
    refusal = await reason_of(events_of(gateway, a_call(demo, answer=answer)))
    assert refusal == (grpc.StatusCode.NOT_FOUND, "CALL_NOT_FOUND")
    with acting_for(MEMBER):
        found = await gateway.runtime.GetCall(api.GetCallRequest(key=a_key(demo)))
    assert found.state == tool_pb2.CALL_STATE_NEVER_SEEN


async def test_an_answer_to_a_call_that_asks_nothing_attaches_to_it(gateway: McpGateway) -> None:
    demo = await found_demo(gateway)
    await events_of(gateway, a_call(demo))
    answer = tool_pb2.InputAnswer(request_id="r1", action=tool_pb2.INPUT_ACTION_ACCEPT)
    started, *_, ended = await events_of(gateway, a_call(demo, answer=answer))
    assert started.started.is_attached
    assert ended.result.outcome == tool_pb2.CALL_OUTCOME_SUCCEEDED


async def test_the_same_execution_id_returns_the_stored_result(gateway: McpGateway) -> None:
    demo = await found_demo(gateway)

    _, first = await events_of(gateway, a_call(demo))
    started, second = await events_of(gateway, a_call(demo))

    assert started.started.is_attached
    assert second == first


async def test_the_tools_own_error_is_a_result(gateway: McpGateway) -> None:
    demo = await found_demo(gateway)

    _, ended = await events_of(gateway, a_call(demo, "Nowhere"))

    assert ended.result.outcome == tool_pb2.CALL_OUTCOME_TOOL_ERROR
    assert "Invalid timezone" in ended.result.parts[0].text.text


async def test_refusals_before_the_start_say_why(gateway: McpGateway) -> None:
    demo = await found_demo(gateway)
    await events_of(gateway, a_call(demo))
    stale, other_journal = a_key(demo, "x", 5), a_key(demo, "x")
    other_journal.journal_generation = "another"
    await gateway.runtime.GetCall(api.GetCallRequest(key=stale))
    calls = {
        "STALE_OWNER": a_call(demo, key=a_key(demo, "x", 4)),
        "JOURNAL_CHANGED": a_call(demo, key=other_journal),
        "EXECUTION_ID_REUSED": a_call(demo, "Asia/Tokyo", key=a_key(demo, owner_epoch=5)),
        "TOOL_CHANGED": a_call(demo, key=stale, expected_digest="0" * 64),
        "TOOL_NOT_FOUND": a_call(demo, key=stale, original_name="nope"),
        "SERVER_NOT_FOUND": a_call(demo, key=stale, server_id=NOWHERE),
        "BAD_ARGUMENTS": a_call(demo, key=stale, arguments_json=b"[]"),
        "INVALID_REQUEST": a_call(demo, key=stale, context=api.ChatContext(chat_id="other")),
    }

    reasons = [(await reason_of(events_of(gateway, call)))[1] for call in calls.values()]
    state = await gateway.runtime.GetCall(api.GetCallRequest(key=stale))

    assert reasons == list(calls)
    assert state.state == tool_pb2.CALL_STATE_NEVER_SEEN


async def test_where_a_call_is_can_be_asked_until_it_is_acknowledged(gateway: McpGateway) -> None:
    demo = await found_demo(gateway)
    asking = api.GetCallRequest(key=a_key(demo))

    unseen = await gateway.runtime.GetCall(asking)
    _, ended = await events_of(gateway, a_call(demo))
    finished = await gateway.runtime.GetCall(asking)
    acknowledged = await gateway.runtime.AckCalls(
        api.AckCallsRequest(
            request_id="r",
            execution_ids=["call-1", "unknown"],
            journal_generation=demo.generation,
        )
    )
    after = await gateway.runtime.GetCall(asking)

    assert unseen.state == tool_pb2.CALL_STATE_NEVER_SEEN
    assert finished.state == tool_pb2.CALL_STATE_FINISHED
    assert finished.result == ended.result
    assert list(acknowledged.skipped_execution_ids) == ["unknown"]
    assert after.state == tool_pb2.CALL_STATE_ACKNOWLEDGED
    assert (after.result.outcome, len(after.result.parts)) == (ended.result.outcome, 0)
    assert (await reason_of(events_of(gateway, a_call(demo))))[1] == "CALL_ACKNOWLEDGED"


async def test_a_call_whose_row_was_deleted_is_acknowledged_and_never_made_again(
    gateway: McpGateway, database: Database
) -> None:
    demo = await found_demo(gateway)
    await events_of(gateway, a_call(demo))
    acknowledging = api.AckCallsRequest(
        request_id="r", execution_ids=["call-1"], journal_generation=demo.generation
    )
    await gateway.runtime.AckCalls(acknowledging)
    await delete_acknowledged(database)

    acknowledged = api.GetCallResponse(state=tool_pb2.CALL_STATE_ACKNOWLEDGED)
    assert await gateway.runtime.GetCall(api.GetCallRequest(key=a_key(demo))) == acknowledged
    cancelling = api.CancelCallRequest(request_id="r", key=a_key(demo))
    cancelled = await gateway.runtime.CancelCall(cancelling)
    assert cancelled.state == tool_pb2.CALL_STATE_ACKNOWLEDGED
    assert (await reason_of(events_of(gateway, a_call(demo))))[1] == "CALL_ACKNOWLEDGED"
    again = await gateway.runtime.AckCalls(acknowledging)
    assert list(again.skipped_execution_ids) == []


async def test_a_call_is_listed_for_auditors_after_its_row_of_the_journal_was_deleted(
    gateway: McpGateway, database: Database
) -> None:
    demo = await found_demo(gateway)
    await events_of(gateway, a_call(demo))
    await gateway.runtime.AckCalls(
        api.AckCallsRequest(
            request_id="r", execution_ids=["call-1"], journal_generation=demo.generation
        )
    )
    await delete_acknowledged(database)
    with acting_for(ADMIN):
        listed = await gateway.tools.ListCalls(tools_api.ListCallsRequest())

    (call,) = listed.calls
    assert (call.slug, call.original_name, call.user_id, call.chat_id, call.outcome) == (
        "demo",
        "get_current_time",
        MEMBER.id,
        "chat-1",
        tool_pb2.CALL_OUTCOME_SUCCEEDED,
    )


async def test_a_call_cancelled_before_it_starts_never_starts(gateway: McpGateway) -> None:
    demo = await found_demo(gateway)

    cancelled = await gateway.runtime.CancelCall(
        api.CancelCallRequest(request_id="r", key=a_key(demo))
    )
    started, ended = await events_of(gateway, a_call(demo))

    assert cancelled.state == tool_pb2.CALL_STATE_FINISHED
    assert started.started.is_attached
    assert ended.result.outcome == tool_pb2.CALL_OUTCOME_CANCELLED
    assert not ended.result.may_have_executed


async def test_one_broken_server_does_not_hide_the_others(gateway: McpGateway) -> None:
    demo = await found_demo(gateway)
    dead = await created(gateway, slug="dead", url=f"http://127.0.0.1:{free_port()}/mcp")
    off = await created(gateway, slug="off", is_enabled=False)
    asked = [dead, demo.server_id, off, NOWHERE, "nonsense"]

    with acting_for(MEMBER):
        listing = await gateway.runtime.ListTools(
            api.ListToolsRequest(context=CHAT, server_ids=asked)
        )

    assert [tool.model_name for tool in listing.tools] == [
        "demo__convert_time",
        "demo__get_current_time",
    ]
    assert [(each.server_id, each.slug, each.state, each.reason) for each in listing.servers] == [
        (
            dead,
            "dead",
            server_pb2.SERVER_STATE_MISCONFIGURED,
            ErrorReason.ERROR_REASON_ADDRESS_BLOCKED,
        ),
        (demo.server_id, "demo", server_pb2.SERVER_STATE_READY, 0),
        (off, "", server_pb2.SERVER_STATE_EXCLUDED, ErrorReason.ERROR_REASON_SERVER_DISABLED),
        (NOWHERE, "", server_pb2.SERVER_STATE_EXCLUDED, ErrorReason.ERROR_REASON_SERVER_NOT_FOUND),
        (
            "nonsense",
            "",
            server_pb2.SERVER_STATE_EXCLUDED,
            ErrorReason.ERROR_REASON_SERVER_NOT_FOUND,
        ),
    ]


async def test_tools_come_in_pages(gateway: McpGateway) -> None:
    demo = await found_demo(gateway)
    request = api.ListToolsRequest(context=CHAT, server_ids=[demo.server_id], page_size=1)

    with acting_for(MEMBER):
        first = await gateway.runtime.ListTools(request)
        request.page_token = first.next_page_token
        second = await gateway.runtime.ListTools(request)
        request.page_token = "bm9uc2Vuc2U6MQ=="
        refused = await reason_of(gateway.runtime.ListTools(request))

    assert [tool.model_name for tool in (*first.tools, *second.tools)] == [
        "demo__convert_time",
        "demo__get_current_time",
    ]
    assert (first.digest, second.next_page_token) == (second.digest, "")
    assert refused == (grpc.StatusCode.ABORTED, "CATALOGUE_CHANGED")


async def test_a_call_to_a_dead_server_is_a_failed_result(
    tmp_path: Path, mcp_database: str
) -> None:
    place = f"127.0.0.1:{free_port()}"
    async with mcp_gateway(tmp_path, mcp_database, allowed=place) as gateway:
        dead = await created(gateway, slug="dead", url=f"http://{place}/mcp")
        with acting_for(MEMBER):
            listing = await gateway.runtime.ListTools(
                api.ListToolsRequest(context=CHAT, server_ids=[dead])
            )
        demo = Demo(dead, listing.journal_generation, tool_pb2.McpTool())
        started, ended = await events_of(gateway, a_call(demo))

    (outcome,) = listing.servers
    assert (outcome.state, outcome.reason) == (
        server_pb2.SERVER_STATE_UNAVAILABLE,
        ErrorReason.ERROR_REASON_CONNECT_FAILED,
    )
    assert started.WhichOneof("event") == "started"
    assert ended.result.outcome == tool_pb2.CALL_OUTCOME_FAILED
    assert ended.result.reason == ErrorReason.ERROR_REASON_CONNECT_FAILED
    assert not ended.result.may_have_executed


async def test_a_running_call_is_left_by_its_stream_and_cancelled_by_name(
    tmp_path: Path, mcp_database: str
) -> None:
    port = free_port()
    place = f"127.0.0.1:{port}"
    with session_process(port, "mcp"):
        await until_listening(port)
        async with (
            asyncio.timeout(20),
            mcp_gateway(tmp_path, mcp_database, allowed=place) as gateway,
        ):
            server_id = await created(gateway, slug="slow", url=f"http://{place}/mcp")
            with acting_for(MEMBER):
                listing = await gateway.runtime.ListTools(
                    api.ListToolsRequest(context=CHAT, server_ids=[server_id])
                )
            slow = Demo(server_id, listing.journal_generation, tool_pb2.McpTool())
            call = a_call(slow, original_name="wait", arguments_json=b"{}")
            with acting_for(MEMBER):
                stream = gateway.runtime.CallTool(call, timeout=10)
            beginning = aiter(stream)
            first = [await anext(beginning), await anext(beginning)]
            stream.cancel()
            running = await gateway.runtime.GetCall(api.GetCallRequest(key=a_key(slow)))
            await gateway.runtime.CancelCall(api.CancelCallRequest(request_id="r", key=a_key(slow)))
            started, *_, ended = await events_of(gateway, call)

    assert [each.WhichOneof("event") for each in first] == ["started", "progress"]
    assert first[1].progress == api.CallProgress(progress=1, total=2, message="half")
    assert running.state == tool_pb2.CALL_STATE_RUNNING
    assert started.started.is_attached
    assert ended.result.outcome == tool_pb2.CALL_OUTCOME_CANCELLED
    assert ended.result.may_have_executed


async def test_a_choice_of_servers_is_checked(gateway: McpGateway) -> None:
    demo = await found_demo(gateway)
    other = await created(gateway, slug="other")
    request = api.ResolveSelectionRequest(context=CHAT)
    request.requested.server_ids.extend([other, NOWHERE])

    with acting_for(MEMBER):
        selection = await gateway.runtime.ResolveSelection(request)

    assert list(selection.stored_server_ids) == [other]
    assert list(selection.effective_server_ids) == [other, demo.server_id]
    assert list(selection.forced_server_ids) == [demo.server_id]
    assert list(selection.invalid_servers) == [
        api.InvalidServer(server_id=NOWHERE, reason=ErrorReason.ERROR_REASON_SERVER_NOT_FOUND)
    ]


async def created(gateway: McpGateway, **fields: object) -> str:
    """Create a server as an admin."""
    given = {
        "slug": "x",
        "display_name": "X",
        "url": "https://mcp.example/mcp",
        "transport": server_pb2.TRANSPORT_STREAMABLE_HTTP,
        "auth_kind": server_pb2.AUTH_KIND_NONE,
        "availability": server_pb2.AVAILABILITY_DEFAULT_OFF,
        "is_enabled": True,
        **fields,
    }
    settings = server_pb2.McpServerSettings(**given)  # type: ignore[arg-type]
    with acting_for(ADMIN):
        response = await gateway.servers.CreateServer(
            servers_api.CreateServerRequest(request_id=settings.slug, settings=settings)
        )
    return response.server.server_id

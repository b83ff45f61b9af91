"""Calls whose servers ask the person: real servers of both protocols, a real database."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from parley.api.mcp.v1 import runtime_service_pb2 as api
from parley.api.mcp.v1 import server_pb2, tool_pb2
from parley.postgres import Database
from parley.rpc import acting_for
from support.host.ports import free_port
from support.mcpgateway.gateway import MEMBER, McpGateway, mcp_gateway
from support.mcpgateway.logins import create_server
from support.mcpgateway.server_calls import called
from support.mcpgateway.servers import START_S_MAX, eliciting_process, until_listening

CHAT = api.ChatContext(chat_id="chat-1", root_chat_id="chat-1")
ACCEPTED = tool_pb2.InputAnswer(
    request_id="1", action=tool_pb2.INPUT_ACTION_ACCEPT, content_json=b'{"colour":"red"}'
)


@dataclass(slots=True)
class AskingLab:
    """A mcpgateway, and a server that asks in a process of its own."""

    gateway: McpGateway
    server_id: str
    generation: str
    processes: AsyncExitStack

    @property
    def key(self) -> api.CallKey:
        """The call that tests make."""
        return api.CallKey(
            execution_id="call-1",
            chat_id="chat-1",
            owner_epoch=1,
            journal_generation=self.generation,
        )

    async def call(
        self, answer: tool_pb2.InputAnswer | None = None, gateway: McpGateway | None = None
    ) -> tool_pb2.InputRequired | tuple["tool_pb2.CallOutcome.ValueType", str]:
        """Make the call or answer it; return what it asks, or its outcome and text."""
        request = api.CallToolRequest(
            key=self.key,
            context=CHAT,
            server_id=self.server_id,
            original_name="paint",
            answer=answer,
        )
        with acting_for(MEMBER):
            stream = (gateway or self.gateway).runtime.CallTool(request)
            last = [response async for response in stream][-1]
        if last.HasField("input_required"):
            return last.input_required
        text = "".join(part.text.text for part in last.result.parts)
        return last.result.outcome, text

    async def found(self) -> api.GetCallResponse:
        """Look into the journal."""
        with acting_for(MEMBER):
            return await self.gateway.runtime.GetCall(api.GetCallRequest(key=self.key))

    async def starts(self) -> str:
        """Ask the server how often the tool began."""
        counted = await called(self.gateway, MEMBER, self.server_id, "count", name="paint")
        return str(json.loads(counted.content_json)[0]["text"])


@pytest.fixture(params=["modern", "mcp", "sse"])
async def lab(
    request: pytest.FixtureRequest, tmp_path: Path, mcp_database: str
) -> AsyncIterator[AskingLab]:
    port, kind = free_port(), str(request.param)
    async with (
        asyncio.timeout(3 * START_S_MAX),
        AsyncExitStack() as processes,
        mcp_gateway(tmp_path / "one", mcp_database, allowed=f"127.0.0.1:{port}") as gateway,
    ):
        processes.enter_context(eliciting_process(port, kind))
        await until_listening(port)
        transport = "SSE" if kind == "sse" else "STREAMABLE_HTTP"
        server_id = await create_server(
            gateway,
            f"http://127.0.0.1:{port}/{'sse' if kind == 'sse' else 'mcp'}",
            auth_kind=server_pb2.AUTH_KIND_NONE,
            transport=server_pb2.Transport.Value(f"TRANSPORT_{transport}"),
        )
        with acting_for(MEMBER):
            listed = await gateway.runtime.ListTools(
                api.ListToolsRequest(context=CHAT, server_ids=[server_id])
            )
        yield AskingLab(gateway, server_id, listed.journal_generation, processes)


async def test_a_call_asks_is_answered_at_any_time_and_runs_once(lab: AskingLab) -> None:
    asked = await lab.call()
    assert isinstance(asked, tool_pb2.InputRequired)
    assert (asked.request_id, asked.kind, asked.message, b"colour" in asked.schema_json) == (
        "1",
        tool_pb2.INPUT_KIND_ELICITATION,
        "Which colour?",
        True,
    )
    assert await lab.call() == asked
    found = await lab.found()
    assert (found.state, found.input_required) == (tool_pb2.CALL_STATE_INPUT_REQUIRED, asked)
    done = (tool_pb2.CALL_OUTCOME_SUCCEEDED, "accept red house")
    assert await lab.call(ACCEPTED) == done
    assert await lab.call(ACCEPTED) == done
    assert await lab.starts() == "1"


async def test_a_person_declines_and_the_server_is_told(lab: AskingLab) -> None:
    await lab.call()
    refused = tool_pb2.InputAnswer(request_id="1", action=tool_pb2.INPUT_ACTION_DECLINE)
    assert await lab.call(refused) == (tool_pb2.CALL_OUTCOME_SUCCEEDED, "decline None house")


async def test_an_answer_to_something_else_is_ignored(lab: AskingLab) -> None:
    asked = await lab.call()
    other = tool_pb2.InputAnswer(request_id="9", action=tool_pb2.INPUT_ACTION_DECLINE)
    assert await lab.call(other) == asked


async def test_a_call_that_waits_is_cancelled(lab: AskingLab) -> None:
    await lab.call()
    with acting_for(MEMBER):
        await lab.gateway.runtime.CancelCall(api.CancelCallRequest(request_id="c", key=lab.key))
    assert (await lab.call(ACCEPTED))[0] == tool_pb2.CALL_OUTCOME_CANCELLED  # type: ignore[index]
    assert await lab.starts() == "1"


async def test_a_server_that_dies_meanwhile_ends_the_call_as_unknown(lab: AskingLab) -> None:
    await lab.call()
    await lab.processes.aclose()
    assert (await lab.call(ACCEPTED))[0] == tool_pb2.CALL_OUTCOME_UNKNOWN  # type: ignore[index]


async def test_a_call_without_anybody_to_answer_is_told_so(lab: AskingLab) -> None:
    result = await called(lab.gateway, MEMBER, lab.server_id, "paint")
    assert json.loads(result.content_json)[0]["text"] == "cancel None house"


async def test_a_server_that_wants_to_use_the_model_is_refused_and_recorded(
    lab: AskingLab, database: Database
) -> None:
    result = await called(lab.gateway, MEMBER, lab.server_id, "think")
    assert result.outcome == tool_pb2.CALL_OUTCOME_TOOL_ERROR
    assert "sampling" in json.loads(result.content_json)[0]["text"].lower()
    recorded = await database.pool.fetch("SELECT tool, outcome FROM mcp.calls")
    assert [tuple(row) for row in recorded] == [("think", "tool_error")]


@pytest.mark.parametrize("lab", ["modern"], indirect=True)
async def test_an_answer_reaches_the_process_that_makes_the_call(
    lab: AskingLab, tmp_path: Path, mcp_database: str
) -> None:
    asked = await lab.call()
    (tmp_path / "two").mkdir(mode=0o700)
    shutil.copy2(tmp_path / "one" / "master.json", tmp_path / "two")
    async with mcp_gateway(tmp_path / "two", mcp_database) as other:
        assert await lab.call(gateway=other) == asked
        assert await lab.call(ACCEPTED, gateway=other) == (
            tool_pb2.CALL_OUTCOME_SUCCEEDED,
            "accept red house",
        )

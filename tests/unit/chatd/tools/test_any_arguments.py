"""Whatever a model sends, a call ends in a result or in a lost request, never in a crash."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import grpc
from hypothesis import given, settings
from hypothesis import strategies as st

from chatd.content.domain.parts import ToolCall, ToolOutcome
from chatd.content.domain.tools import Dispatch, Execution, Executor, ExecutorUnreachable
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.ids import ChatId, ExecutionId, Owner, OwnerId
from chatd.tools.workspace import TOOLS, Call
from chatd.workspaces.domain.ports import WorkspaceLocation
from parley.clock import FakeClock
from support.chatd.workspaces.in_memory_attachments import InMemoryAttachmentStore
from support.session.examples import examples

CHAT = ChatId("00000000-0000-0000-0000-000000000001")
ANN = Owner(OwnerId("00000000-0000-0000-0000-00000000000a"), "member")
SITE = WorkspaceLocation("unix:/nowhere", CHAT)


class PassingClock(FakeClock):
    """Time that passes at once: a read waits for toolrunner to come back."""

    async def sleep(self, delay_s: float) -> None:
        self.advance(delay_s)


class DeadChannel:
    """Encodes every request as a channel does, and loses it."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        kind = name

        def method(_: str, request_serializer: Callable[[Any], bytes], **__: Any) -> Any:
            def lose(request: Any) -> None:
                request_serializer(request)
                empty = grpc.aio.Metadata()
                raise grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, empty, empty, "dead")

            async def ask(request: Any, **_: Any) -> Any:
                lose(request)

            async def stream(request: Any, **_: Any) -> Any:
                lose(request)
                yield

            return stream if kind == "unary_stream" else ask

        return method


TEXTS = st.text(max_size=12) | st.sampled_from(
    ["5s", "exit", "kill", "match:(", "a\0b", "*** Begin Patch", "srv &", "\ud800", "[1]"]
)
VALUES = {
    "string": TEXTS,
    "integer": st.integers() | st.integers(1, 3),
    "boolean": st.booleans(),
}


def values_for(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Return values that are nearly right."""
    match schema:
        case {"enum": list(choices)}:
            return st.sampled_from(choices)
        case {"type": "array"}:
            return st.lists(values_for(schema["items"]), max_size=2)
        case {"type": "object", "properties": dict(properties)}:
            made = {name: values_for(each) for name, each in properties.items()}
            required = {name: made.pop(name) for name in schema.get("required", ())}
            return st.fixed_dictionaries(required, optional=made)
        case {"type": "object"}:
            return st.dictionaries(TEXTS, TEXTS, max_size=2)
        case _:
            return VALUES[schema["type"]]


CALLS = st.sampled_from(sorted(TOOLS)).flatmap(
    lambda name: st.tuples(st.just(name), values_for(json.loads(TOOLS[name].input_schema_json)))
)


@settings(max_examples=examples(300), deadline=None)
@given(CALLS, st.integers(16_384, 65_536))
def test_a_call_ends_in_a_result_or_in_a_lost_request(
    called: tuple[str, dict[str, Any]], budget_bytes: int
) -> None:
    name, arguments = called
    tool = TOOLS[name]
    dispatch = Dispatch(
        ExecutionId("e"), ToolCall("c", name, json.dumps(arguments)), Executor.TOOLRUNNER, "j1"
    )
    execution = Execution(TurnContext(CHAT, ANN), 1, dispatch, tool.spec("j1"), budget_bytes)
    channel: Any = DeadChannel()
    try:
        outcome = asyncio.run(
            tool.call(Call(execution, channel, PassingClock(), InMemoryAttachmentStore(), SITE))
        )
    except ExecutorUnreachable:
        assert tool.has_effect
        return
    told = json.loads(outcome.result_json)
    assert outcome.outcome is ToolOutcome.FAILED
    assert {"ok", "error", "reason", "hint"} <= told.keys()
    assert told["ok"] is False

"""The tool `monitor_process`: what it stores, and what it answers at once."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from chatd.chats.domain.errors import FenceLost
from chatd.content.domain.messages import ChatMode
from chatd.content.domain.parts import ToolCall, ToolOutcome
from chatd.content.domain.tools import Dispatch, Execution, Executor, NeverSeen, Outcome
from chatd.content.domain.turn_context import TurnContext
from chatd.monitors.domain.monitor import Monitor, MonitorRefused, MonitorState
from chatd.primitives.domain.ids import (
    NO_MESSAGE,
    ChatId,
    ExecutionId,
    Owner,
    OwnerClaim,
    OwnerId,
)
from chatd.tools.monitors import SPEC, MonitorTools
from chatd.tools.workspace.call import NodeAway
from parley.api.workspace.v1 import process_pb2
from parley.api.workspace.v1 import process_service_pb2 as api

CHAT = ChatId("00000000-0000-0000-0000-000000000001")
ANN = Owner(OwnerId("ann"), "member")
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
RUNNING = process_pb2.Process(
    process_id="p1", command="npm  run `dev`", state=process_pb2.PROCESS_STATE_RUNNING
)


@dataclass
class Stored:
    """The monitors of one chat."""

    added: list[Monitor] = field(default_factory=list)
    refusal: MonitorRefused | None = None
    owner_epoch: int = 1

    async def has(self, chat_id: ChatId, owner_id: OwnerId, monitor_id: str) -> bool:
        return any((each.chat_id, each.id) == (chat_id, monitor_id) for each in self.added)

    async def add(self, monitor: Monitor, claim: OwnerClaim) -> None:
        if claim != OwnerClaim(monitor.chat_id, self.owner_epoch, NO_MESSAGE):
            raise FenceLost(monitor.chat_id)
        if self.refusal is not None:
            raise self.refusal
        self.added.append(monitor)


@dataclass
class Processes:
    """One process."""

    found: api.WaitOutputResponse | Exception
    asked: list[tuple[str, str, int]] = field(default_factory=list)

    async def snapshot(
        self, chat_id: ChatId, owner: Owner, process_id: str, pattern: str, since: int
    ) -> api.WaitOutputResponse:
        assert (chat_id, owner) == (CHAT, ANN)
        self.asked.append((process_id, pattern, since))
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


def found(
    reason: "process_pb2.WaitReason.ValueType" = process_pb2.WAIT_REASON_TIMEOUT,
    process: process_pb2.Process = RUNNING,
    matched_line: str = "",
) -> api.WaitOutputResponse:
    output = process_pb2.ProcessOutput(text="", next_cursor=9, matched_line=matched_line)
    return api.WaitOutputResponse(process=process, output=output, reason=reason, search_cursor=7)


async def made(stored: Stored, processes: Processes, **args: Any) -> tuple[ToolOutcome, Any]:
    call = ToolCall("c", "monitor_process", json.dumps({"process_id": "p1", **args}))
    dispatch = Dispatch(ExecutionId("e1"), call, Executor.CHATD, "")
    execution = Execution(TurnContext(CHAT, ANN), 1, dispatch, SPEC)
    tools = MonitorTools(stored, processes, lambda: NOON)
    assert await tools.find(execution) == NeverSeen()
    await tools.cancel(execution)
    outcome = await tools.execute(execution)
    assert isinstance(outcome, Outcome)
    return outcome.outcome, json.loads(outcome.result_json)


async def test_a_monitor_is_stored_with_an_id_of_its_call() -> None:
    stored, processes = Stored(), Processes(found())
    _, told = await made(stored, processes, pattern="ready", since=4, timeout="5m", note="Go on.")
    (first,) = stored.added
    assert (told["monitor_id"], told["process_id"]) == (first.id, "p1")
    assert processes.asked[0] == ("p1", "ready", 4)
    assert (first.command, first.cursor, first.state) == ("npm run 'dev'", 7, MonitorState.WAITING)
    assert first.expires_at - first.created_at == timedelta(minutes=5)


async def test_a_repeated_call_returns_the_stored_monitor_whatever_the_process_did() -> None:
    stored = Stored()
    first = await made(stored, Processes(found()), pattern="ready")
    for answer in (found(process_pb2.WAIT_REASON_MATCHED), NodeAway("it is stopping")):
        assert await made(stored, Processes(answer), pattern="ready") == first
    assert len(stored.added) == 1


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        (found(process_pb2.WAIT_REASON_MATCHED, matched_line="ready"), ("matched_line", "ready")),
        (
            found(
                process_pb2.WAIT_REASON_EXITED,
                process_pb2.Process(process_id="p1", state=process_pb2.PROCESS_STATE_EXITED),
            ),
            ("process_id", "p1"),
        ),
    ],
)
async def test_what_happened_already_is_told_at_once(
    answer: api.WaitOutputResponse, shown: tuple[str, str]
) -> None:
    stored = Stored()
    _, told = await made(stored, Processes(answer), pattern="ready")
    assert told[shown[0]] == shown[1]
    assert "no monitor was made" in told["notes"][0]
    assert stored.added == []


@pytest.mark.parametrize(
    ("args", "stored", "processes", "reason"),
    [
        ({"timeout": "25h"}, Stored(), Processes(found()), "INVALID_ARGUMENTS"),
        ({"pattern": 1}, Stored(), Processes(found()), "INVALID_ARGUMENTS"),
        ({"pattern": "a\0"}, Stored(), Processes(found()), "INVALID_ARGUMENTS"),
        ({}, Stored(refusal=MonitorRefused("10.")), Processes(found()), "TOO_MANY_MONITORS"),
        ({}, Stored(), Processes(NodeAway("it is stopping")), "UNREACHABLE"),
    ],
)
async def test_every_refusal_is_a_result_that_says_what_to_do(
    args: dict[str, Any], stored: Stored, processes: Processes, reason: str
) -> None:
    outcome, told = await made(stored, processes, **args)
    assert (outcome, told["reason"]) == (ToolOutcome.FAILED, reason)
    assert told["hint"]
    assert stored.added == []


async def test_a_call_of_an_owner_that_was_replaced_stores_nothing_and_has_no_result() -> None:
    stored = Stored(owner_epoch=2)
    with pytest.raises(FenceLost):
        await made(stored, Processes(found()), pattern="ready")
    assert stored.added == []


async def test_it_is_offered_to_root_chats_that_may_change_something() -> None:
    tools = MonitorTools(Stored(), Processes(found()), lambda: NOON)
    assert await tools.list_tools(TurnContext(CHAT, ANN)) == (SPEC,)
    for context in (
        TurnContext(CHAT, ANN, ancestor_ids=(CHAT,)),
        TurnContext(CHAT, ANN, mode=ChatMode.PLAN),
    ):
        assert await tools.list_tools(context) == ()

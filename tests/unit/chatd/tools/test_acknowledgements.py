"""When the results of calls are acknowledged, and how."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from chatd.chats.domain.chat import ChatState, PendingCall, Status
from chatd.content.domain.parts import ToolCall
from chatd.content.domain.tools import (
    Dispatch,
    Execution,
    Executor,
    ExecutorUnreachable,
    ToolSpec,
)
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.ids import ChatId, ExecutionId, MessageId, Owner, OwnerId
from chatd.tools.acknowledgements import BATCH_MAX, GIVE_UP_S, SEND_EVERY_S, Acknowledgements
from parley.clock import FakeClock

CHAT = ChatId("00000000-0000-0000-0000-000000000001")
ANN = Owner(OwnerId("00000000-0000-0000-0000-00000000000a"), "member")
DISPATCHED = ChatState(CHAT, Status.RUNNING, 5, 5, 1, MessageId(3))

Sent = list[tuple[str, list[str]]]


@dataclass
class Journals:
    """An executor that notes what is acknowledged to it."""

    sent: Sent = field(default_factory=list)
    is_reachable: bool = True
    received: asyncio.Event = field(default_factory=asyncio.Event)

    async def acknowledge(self, generation: str, execution_ids: Sequence[ExecutionId]) -> None:
        if not self.is_reachable:
            raise ExecutorUnreachable(Executor.TOOLRUNNER)
        self.sent.append((generation, list(execution_ids)))
        self.received.set()


@dataclass
class Chat:
    """A chat whose calls are passed to executors."""

    nodes: Journals = field(default_factory=Journals)
    gateways: Journals = field(default_factory=Journals)
    clock: FakeClock = field(default_factory=FakeClock)

    def __post_init__(self) -> None:
        self.acknowledgements = Acknowledgements(
            {Executor.TOOLRUNNER: self.nodes, Executor.MCPGATEWAY: self.gateways}, self.clock
        )

    def commit(self, version: int, *pending: str) -> None:
        calls = tuple(PendingCall(each, "a", ExecutionId(each)) for each in pending)
        state = replace(DISPATCHED, snapshot_version=version, pending=calls)
        self.acknowledgements.state_changed(state)

    def call(
        self, name: str, executor: Executor = Executor.TOOLRUNNER, generation: str = "g"
    ) -> None:
        call = ToolCall(name, "a", "{}")
        dispatch = Dispatch(ExecutionId(name), call, executor, generation)
        spec = ToolSpec("a", "", "{}", executor)
        self.acknowledgements.dispatched(Execution(TurnContext(CHAT, ANN), 1, dispatch, spec))


async def test_a_call_is_acknowledged_only_after_its_result_is_stored() -> None:
    chat = Chat()
    chat.commit(5, "one", "two")
    chat.call("one")
    chat.call("two")
    await chat.acknowledgements.send()
    assert chat.nodes.sent == []
    # One of them is recorded and both wait for the commit.
    chat.commit(6, "one", "two")
    chat.commit(7, "two")
    await chat.acknowledgements.send()
    assert chat.nodes.sent == [("g", ["one"])]
    chat.commit(8)
    await chat.acknowledgements.send()
    assert chat.nodes.sent == [("g", ["one"]), ("g", ["two"])]


async def test_a_state_from_before_the_dispatch_acknowledges_nothing() -> None:
    chat = Chat()
    chat.commit(5, "one")
    chat.call("one")
    chat.commit(4)
    await chat.acknowledgements.send()
    assert chat.nodes.sent == []


async def test_a_call_of_which_no_pending_state_was_seen_is_not_acknowledged() -> None:
    chat = Chat()
    chat.call("one")
    chat.commit(6)
    await chat.acknowledgements.send()
    assert chat.nodes.sent == []


async def test_each_journal_gets_its_own_in_batches_and_other_executors_nothing() -> None:
    chat = Chat()
    names = [str(number) for number in range(BATCH_MAX + 1)]
    chat.commit(5, *names, "other", "mcp", "own")
    for name in names:
        chat.call(name)
    chat.call("other", generation="h")
    chat.call("mcp", Executor.MCPGATEWAY)
    chat.call("own", Executor.CHATD)
    chat.commit(6)
    await chat.acknowledgements.send()
    assert chat.nodes.sent == [("g", names[:-1]), ("g", names[-1:]), ("h", ["other"])]
    assert chat.gateways.sent == [("g", ["mcp"])]


async def test_an_executor_that_is_away_gets_them_later_and_delays_no_other() -> None:
    chat = Chat()
    chat.nodes.is_reachable = False
    chat.commit(5, "one", "mcp")
    chat.call("one")
    chat.call("mcp", Executor.MCPGATEWAY)
    chat.commit(6)
    await chat.acknowledgements.send()
    assert chat.gateways.sent == [("g", ["mcp"])]
    chat.commit(7, "two")
    chat.call("two")
    chat.commit(8)
    chat.nodes.is_reachable = True
    await chat.acknowledgements.send()
    assert chat.nodes.sent == [("g", ["one", "two"])]


async def test_an_executor_that_stays_away_is_given_up() -> None:
    chat = Chat()
    chat.nodes.is_reachable = False
    chat.commit(5, "one")
    chat.call("one")
    chat.commit(6)
    chat.clock.advance(GIVE_UP_S)
    await chat.acknowledgements.send()
    chat.nodes.is_reachable = True
    await chat.acknowledgements.send()
    assert chat.nodes.sent == []


async def test_the_loop_sends_what_came_together_in_one_batch() -> None:
    chat = Chat()
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        sending = tasks.create_task(chat.acknowledgements.run())
        for version, name in ((5, "one"), (7, "two")):
            chat.commit(version, name)
            chat.call(name)
            chat.commit(version + 1)
        assert await chat.clock.until_sleeping() == SEND_EVERY_S
        assert chat.nodes.sent == []
        chat.clock.advance(SEND_EVERY_S)
        await chat.nodes.received.wait()
        sending.cancel()
    assert chat.nodes.sent == [("g", ["one", "two"])]


async def test_a_process_that_stops_sends_the_rest() -> None:
    chat = Chat()
    chat.commit(5, "one")
    chat.call("one")
    chat.commit(6)
    await chat.acknowledgements.flush()
    assert chat.nodes.sent == [("g", ["one"])]

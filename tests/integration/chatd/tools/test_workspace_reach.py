"""What a workspace reached is kept with the results of calls, and asks before the next ones."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from chatd.approvals.domain.judgement import Allow, Ask
from chatd.chats.domain.chat import Message
from chatd.chats.store.codec import parts_from_json, parts_to_json
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import ReachedHosts, ToolCall, ToolResult
from chatd.content.domain.tools import Execution, StillRunning
from chatd.content.domain.truncation import BUDGET_BYTES_UNKNOWN
from chatd.primitives.domain.ids import ChatId, MessageId
from chatd.turns.domain.calls import executed_result
from parley.rpc import Channels
from support.chatd.approvals.in_memory_rules import Rules, Tree, judge_of
from support.chatd.workspaces.workspace_calls import CHAT, Calls
from support.toolrunner.hosted_workspaces import Placer
from support.toolrunner.node import connected, node
from support.toolrunner.proxied_workspaces import (
    HOST,
    check_level,
    house_of,
    proxied,
    running_origin,
)

REACHED = ReachedHosts((HOST,))
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
async def calls(tmp_path: Path) -> AsyncIterator[Calls]:
    """Calls of a chat in a workspace whose Makefile fetches."""
    async with running_origin() as port:
        house = house_of(tmp_path, port, "landlock")
        async with node(house), connected(house) as client:
            placer = Placer(client, Path(house.data))
            await placer.prepare(CHAT, proxied(port))
            placer.enter(CHAT)
            await check_level(client, "landlock")
            fetch = f"curl -sS -m 20 http://{HOST}:{port}/"
            placer.root(CHAT).joinpath("Makefile").write_text(f"all:\n\t@{fetch}\n")
            channels = Channels((house.address,), lambda _: client.channel)
            yield Calls.through(channels, house.clock, epoch=1)


async def result_of(calls: Calls, execution: Execution) -> ToolResult:
    """Execute a call and return its result as the chat stores it and reads it back."""
    outcome = await calls.tools.execute(execution)
    call = execution.dispatch.call
    result = executed_result(call, outcome, budget_bytes=BUDGET_BYTES_UNKNOWN, at=NOW)
    (stored,) = parts_from_json(parts_to_json((result,)))
    assert isinstance(stored, ToolResult)
    return stored


def history(*parts: ToolCall | ToolResult) -> list[Message]:
    return [
        Message(MessageId(place), place, Role.ASSISTANT, (part,), "", NOW)
        for place, part in enumerate(parts, 1)
    ]


async def test_a_program_that_fetches_makes_the_next_call_ask_in_every_chat_of_the_tree(
    calls: Calls,
) -> None:
    execution = await calls.execution("execute", json.dumps({"command": "make", "timeout": "30s"}))
    result = await result_of(calls, execution)
    # The next owner finds the call at the node and attaches to it.
    assert isinstance(await calls.tools.find(execution), StillRunning)
    after_takeover = await result_of(calls, execution)

    run = ToolCall("next", "execute", '{"command": "ls"}')
    specs = {"execute": execution.spec}
    child_id = ChatId("00000000-0000-0000-0000-0000000000a2")
    child = replace(execution.context, chat_id=child_id, ancestor_ids=(CHAT,))
    before = [execution.dispatch.call]
    tree = Tree({child_id: (), CHAT: history(*before, result)})
    judge = judge_of(Rules(), tree=tree)
    alone = judge_of(Rules(), tree=Tree({CHAT: ()}))
    judged = [
        await alone.judge(execution.context, history(*before), [run], specs),
        await alone.judge(execution.context, history(*before, result), [run], specs),
        await judge.judge(child, [], [run], specs),
    ]

    assert [result.reached, after_takeover.reached] == [REACHED, REACHED]
    assert json.loads(result.result_json)["output"] == "hello\n"
    assert [type(each["next"]) for each in judged] == [Allow, Ask, Ask]


async def test_the_results_of_all_tools_of_a_workspace_keep_it(calls: Calls) -> None:
    async def reached(name: str, **arguments: object) -> ReachedHosts | None:
        return (await result_of(calls, await calls.execution(name, json.dumps(arguments)))).reached

    before = await reached("read_file", path="Makefile")
    cat = await calls.call("execute", command="make; cat", keep_stdin_open=True, timeout="1s")
    process_id = cat[1]["process_id"]
    edit = [{"path": "a", "edits": [{"old_text": "b", "new_text": "c"}]}]
    after = {
        "process_output": await reached("process_output", process_id=process_id, wait_timeout="0s"),
        "process_write": await reached("process_write", process_id=process_id, text="a\n"),
        "process_list": await reached("process_list"),
        "process_signal": await reached("process_signal", process_id=process_id, signal="kill"),
        "read_file": await reached("read_file", path="Makefile"),
        "write_file": await reached("write_file", path="a", content="b"),
        "edit_files": await reached("edit_files", files=edit),
        "apply_patch": await reached("apply_patch", patch="*** Begin Patch\n*** End Patch\n"),
        "undo_edit": await reached("undo_edit", path="a"),
        "list_files": await reached("list_files"),
        "find_files": await reached("find_files", query="*"),
        "search_files": await reached("search_files", pattern="all"),
        "execute": await reached("execute", command="true"),
    }
    assert before is None
    assert after == dict.fromkeys(after, REACHED)

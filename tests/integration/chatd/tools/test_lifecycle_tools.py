"""The tools by which a model gets its chat a workspace: results that instruct, and repetitions."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from chatd.chats.domain.errors import FenceLost
from chatd.content.domain.parts import ToolCall, ToolOutcome
from chatd.content.domain.tools import Dispatch, Execution, Executor, StillRunning, ToolSpec
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.ids import ChatId, ExecutionId, Owner
from chatd.tools.lifecycle import TOOLS, LifecycleTools
from chatd.workspaces.domain.ranking import USE_RECOMMENDED
from chatd.workspaces.domain.templates import SCRATCH_ID
from chatd.workspaces.domain.workspace import Failure, FailureKind
from support.chatd.chats.chat_people import ANN_ID
from support.chatd.chats.served_chats import ServedChats
from support.chatd.workspaces.served_catalogue import Catalogue, Facts

ANN = Owner(ANN_ID, "member")


class Model:
    """Calls tools in one chat, as the engine would carry them out."""

    def __init__(self, tools: LifecycleTools, chat_id: ChatId) -> None:
        self.tools = tools
        self.chat_id = chat_id
        self.made = 0

    def execution(self, name: str, /, **arguments: Any) -> Execution:
        self.made += 1
        call = ToolCall(f"call-{self.made}", name, json.dumps(arguments))
        dispatch = Dispatch(ExecutionId(f"execution-{self.made}"), call, Executor.CHATD, "")
        return Execution(TurnContext(self.chat_id, ANN, turn_id=1), 1, dispatch, TOOLS[name].spec)

    async def again(self, execution: Execution) -> dict[str, Any]:
        outcome = await self.tools.execute(execution)
        told: dict[str, Any] = json.loads(outcome.result_json)
        assert told["ok"] is (outcome.outcome is ToolOutcome.DONE)
        return told

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        return await self.again(self.execution(name, **arguments))


@pytest.fixture
async def model(served: ServedChats, catalogue: Catalogue) -> AsyncIterator[Model]:
    chat_id = ChatId((await served.ann.create()).id)
    tools = LifecycleTools(catalogue.control)
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(catalogue.driver.run())
        yield Model(tools, chat_id)
        running.cancel()


async def test_only_root_chats_get_the_tools(served: ServedChats, model: Model) -> None:
    facts = Facts(served.pool)

    async def offered_to(chat_id: ChatId) -> tuple[ToolSpec, ...]:
        ancestor_ids = (await facts.chat(chat_id)).ancestor_ids
        return await model.tools.list_tools(TurnContext(chat_id, ANN, ancestor_ids=ancestor_ids))

    offered = await offered_to(model.chat_id)
    assert [spec.name for spec in offered] == list(TOOLS)
    assert {spec.name for spec in offered if spec.moves_tools} == {
        "create_workspace",
        "start_workspace",
    }
    child = ChatId(await served.add_child(model.chat_id))
    assert await offered_to(child) == ()
    grandchild = ChatId(await served.add_child(child))
    assert (await facts.chat(grandchild)).ancestor_ids == (child, model.chat_id)


async def test_a_model_finds_a_template_and_reads_it(model: Model) -> None:
    listed = await model.call("list_templates")
    assert (listed["recommended_template_id"], listed["next_step"]) == (
        SCRATCH_ID,
        USE_RECOMMENDED,
    )
    assert [each["name"] for each in listed["templates"]] == ["scratch"]
    read = await model.call("read_template", template_id=SCRATCH_ID)
    assert (read["template"]["kind"], read["parameters"]) == ("scratch", [])
    absent = await model.call("read_template", template_id="0" * 32)
    assert absent["reason"] == "TEMPLATE_NOT_FOUND"
    assert (await model.call("read_template", template_id="x"))["reason"] == "INVALID_ARGUMENTS"


async def test_a_workspace_is_created_stopped_and_started_each_with_its_next_step(
    model: Model, catalogue: Catalogue
) -> None:
    creating = model.execution("create_workspace", template_id=SCRATCH_ID, name="mine")
    made = await model.again(creating)
    assert (made["created"], made["workspace_name"], made["state"]) == (True, "mine", "ready")
    assert (made["directory"], made["next_step"]) == (
        "/workspace",
        "The workspace is ready: all tools work there now.",
    )
    # Repeated after a crash, the call finds what it made.
    assert await model.tools.find(creating) == StillRunning()
    assert await model.again(creating) == made
    another = await model.call("create_workspace", template_id=SCRATCH_ID)
    assert (another["created"], another["already_exists"]) == (False, True)
    assert another["workspace_id"] == made["workspace_id"]
    running = await model.call("start_workspace")
    assert (running["started"], running["no_build"]) == (False, True)

    stopped = await model.call("stop_workspace")
    assert (stopped["stopped"], stopped["state"]) == (True, "stopped")
    assert (await model.call("stop_workspace"))["no_build"] is True
    refused = await model.call("create_workspace", template_id=SCRATCH_ID)
    assert (refused["reason"], refused["hint"]) == (
        "WORKSPACE_STOPPED",
        "Call start_workspace instead.",
    )
    started = await model.call("start_workspace")
    assert (started["started"], started["state"]) == (True, "ready")
    assert started["build_id"] == f"{made['workspace_id']}-2"


async def test_a_failed_build_tells_its_log_and_can_be_made_again(
    model: Model, catalogue: Catalogue
) -> None:
    creating = model.execution("create_workspace", template_id=SCRATCH_ID)
    workspace_id = catalogue.control.id_for(ANN_ID, creating.dispatch.execution_id)
    catalogue.host.failures[workspace_id] = Failure(FailureKind.SETUP, "The script ended with 1.")
    failed = await model.again(creating)
    assert (failed["reason"], failed["error"], failed["log"]) == (
        "WORKSPACE_SETUP",
        "The script ended with 1.",
        ["making it"],
    )
    catalogue.host.failures.clear()
    assert (await model.call("start_workspace"))["state"] == "ready"


@pytest.mark.parametrize("changed", ["owner_epoch", "turn_id"])
@pytest.mark.parametrize("name", ["create_workspace", "start_workspace", "stop_workspace"])
async def test_a_call_of_an_owner_that_was_replaced_or_a_turn_that_is_over_has_no_effect(
    model: Model, served: ServedChats, catalogue: Catalogue, name: str, changed: str
) -> None:
    late = model.execution(name, **({"template_id": SCRATCH_ID} if name[0] == "c" else {}))
    if name != "create_workspace":
        await model.call("create_workspace", template_id=SCRATCH_ID)
    if name == "start_workspace":
        await model.call("stop_workspace")
    end = f"UPDATE chat.chat_exec SET {changed} = {changed} + 1 WHERE chat_id = $1"
    await served.pool.execute(end, model.chat_id)
    seen = "SELECT id, state, version, epoch FROM chat.workspaces ORDER BY id"
    before = await served.pool.fetch(seen)
    with pytest.raises(FenceLost):
        await model.tools.execute(late)
    assert await served.pool.fetch(seen) == before


async def test_without_a_workspace_there_is_nothing_to_start_or_stop(model: Model) -> None:
    for name in ("start_workspace", "stop_workspace"):
        assert (await model.call(name))["reason"] == "NO_WORKSPACE"


async def test_a_used_up_quota_is_told_with_its_structure(
    model: Model, served: ServedChats, catalogue: Catalogue
) -> None:
    for number in (10, 20):
        chat_id = ChatId((await served.ann.create()).id)
        other = Model(model.tools, chat_id)
        other.made = number
        await other.call("create_workspace", template_id=SCRATCH_ID)
    refused = await model.call("create_workspace", template_id=SCRATCH_ID)
    assert (refused["reason"], refused["dimension"], refused["used"], refused["limit"]) == (
        "QUOTA_EXHAUSTED",
        "live_workspaces",
        2,
        2,
    )


async def test_a_model_is_told_when_it_may_create_the_next_workspace(
    model: Model, served: ServedChats, catalogue: Catalogue
) -> None:
    for number in range(10):
        other = Model(model.tools, ChatId((await served.ann.create()).id))
        other.made = 10 * (number + 1)
        made = await other.call("create_workspace", template_id=SCRATCH_ID)
        await catalogue.control.remove(made["workspace_id"], is_forced=False)
        await catalogue.drive()
    refused = await model.call("create_workspace", template_id=SCRATCH_ID)
    assert refused["reason"] == "TOO_MANY_NEW_WORKSPACES"
    assert 0 < refused["retry_after_s"] <= 60

"""A parent reads the processes of its agents: which there are, and what one printed."""

import json

from chatd.chats.domain.agents import Agent
from chatd.chats.domain.chat import Status
from chatd.content.domain.parts import ToolCall
from chatd.content.domain.tools import AGENT_PROCESSES, Dispatch, Execution, Executor, ToolSpec
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.ids import ChatId, ExecutionId, Owner, OwnerId
from chatd.tools.agents.inputs import ProcessesInput
from chatd.tools.agents.processes import read_processes
from support.chatd.tools.agent_processes import StoredProcesses

ANN = Owner(OwnerId("ann"), "member")
AGENT = Agent(ChatId("agent"), "Builder", False, Status.RUNNING, False, "", None, 0, 1)
SPEC = ToolSpec(AGENT_PROCESSES, "", "{}", Executor.CHATD)


async def read(given: ProcessesInput) -> dict[str, object]:
    dispatch = Dispatch(ExecutionId("e"), ToolCall("c", SPEC.name, "{}"), Executor.CHATD, "")
    execution = Execution(TurnContext(ChatId("parent"), ANN), 1, dispatch, SPEC)
    processes = StoredProcesses(AGENT.chat_id, p1="one\ntwo\n", p2="")
    told: dict[str, object] = json.loads(
        (await read_processes(processes, execution, AGENT, given)).result_json
    )
    return told


async def test_the_processes_of_an_agent_are_listed() -> None:
    told = await read(ProcessesInput(agent_id=AGENT.chat_id, limit=1))
    listed = told["processes"]
    assert isinstance(listed, list)
    assert [(each["process_id"], each["running"]) for each in listed] == [("p1", True)]
    assert (told["agent_id"], told["total"]) == (AGENT.chat_id, 2)


async def test_the_output_of_a_process_of_an_agent_is_read_from_a_cursor_on() -> None:
    told = await read(ProcessesInput(agent_id=AGENT.chat_id, process_id="p1", since=4))
    assert (told["command"], told["running"]) == ("sleep 60", True)
    assert (told["output"], told["next_cursor"]) == ("two\n", 8)
    assert "since=8" in str(told["next_step"])

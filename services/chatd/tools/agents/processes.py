"""Processes of agents, which their parent can read but not change."""

from typing import Final, Protocol

import grpc

from chatd.chats.domain.agents import Agent
from chatd.content.domain.tools import Execution, Outcome
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import ChatId, Owner
from chatd.tools.agents.inputs import ProcessesInput
from chatd.tools.workspace.call import NodeAway
from chatd.tools.workspace.not_ready import not_ready
from chatd.tools.workspace.process_results import (
    is_running,
    output_fields,
    process_fields,
    truncation_fields,
)
from chatd.tools.workspace.process_wait import OUTPUT_BYTES_MAX, output_budget
from chatd.tools.workspace.processes import process_entry
from chatd.tools.workspace.results import failed, refused, succeeded
from chatd.workspaces.clients.failures import plain_problem
from parley.api.workspace.v1 import process_service_pb2 as api

RUNNING: Final = (
    "It still runs. Call this again with since={cursor} for what it prints next; wait_agents waits "
    "for the agent."
)


class AgentProcesses(Protocol):
    """Reads processes of chats; failures are those of `NodeProcesses`."""

    async def listed(
        self, chat_id: ChatId, owner: Owner, processes_max: int
    ) -> api.ListProcessesResponse:
        """Return so many processes of a chat, running ones first."""
        ...

    async def output(
        self, chat_id: ChatId, owner: Owner, process_id: str, *, since: int, output_bytes: int
    ) -> api.WaitOutputResponse:
        """Return a process, with so much of what it printed after a cursor."""
        ...


async def read_processes(
    processes: AgentProcesses, execution: Execution, agent: Agent, given: ProcessesInput
) -> Outcome:
    """Return the processes of an agent, or the output of one of them; nothing is waited for."""
    try:
        if not given.process_id:
            return _list(agent, await processes.listed(agent.chat_id, execution.owner, given.limit))
        found = await processes.output(
            agent.chat_id,
            execution.owner,
            given.process_id,
            since=given.since,
            output_bytes=output_budget(OUTPUT_BYTES_MAX, execution.budget_bytes),
        )
    except ChatError as unready:
        return not_ready(unready)
    except NodeAway as away:
        return failed(str(away), "UNREACHABLE", "Call it again later.")
    except grpc.aio.AioRpcError as error:
        return refused(plain_problem(error))
    process, output = found.process, found.output
    return succeeded(
        {
            "agent_id": agent.chat_id,
            "command": process.command,
            **process_fields(process),
            **output_fields(output),
        },
        truncation=truncation_fields(output) or None,
        next_step=RUNNING.format(cursor=output.next_cursor) if is_running(process) else "",
    )


def _list(agent: Agent, listing: api.ListProcessesResponse) -> Outcome:
    listed = [process_entry(process) for process in listing.processes]
    left_out = max(0, listing.total - len(listed))
    return succeeded(
        {"agent_id": agent.chat_id, "processes": listed, "total": listing.total},
        truncation={"omitted_processes": left_out} if left_out else None,
        next_step="Give process_id to read the output of one." if listed else "",
    )

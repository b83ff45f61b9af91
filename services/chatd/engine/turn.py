"""One turn: ask the model, run its tools, commit, until it has nothing left to call."""

import asyncio
import json
import uuid
from dataclasses import dataclass

from chatd.domain.chat import ChatId, ChatState, ExecutionId, NewMessage, Owner, Role
from chatd.domain.commands import CommitStep, Fence, FinishTurn
from chatd.domain.model import (
    Finished,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    ToolCallRequested,
)
from chatd.domain.parts import Part, Reasoning, Text, ToolCall, ToolOutcome, ToolResult
from chatd.domain.ports import Chats, LanguageModel, Tools
from chatd.domain.tools import Dispatch, Execution, Outcome, ToolSpec
from chatd.domain.transitions import fence_of
from chatd.engine.live import Episode, LiveChats


class AnswerCutOff(Exception):
    """The model's stream ended before it said that it was finished."""


@dataclass(frozen=True, slots=True)
class TurnPorts:
    """What a turn needs from the world."""

    chats: Chats
    model: LanguageModel
    tools: Tools
    live: LiveChats


async def run_turn(claimed: ChatState, *, owner: Owner, model: str, ports: TurnPorts) -> None:
    """Run the turn of a chat that this worker has just claimed, to its end.

    Raises:
        FenceLost: the chat has another owner by now; nothing more was written.
    """
    chat_id = claimed.chat_id
    fence = fence_of(claimed)
    offered = await ports.tools.offer(chat_id, owner)
    specs = {spec.name: spec for spec in offered}
    while True:
        history = await ports.chats.history(chat_id)
        episode = ports.live.open(chat_id, fence)
        request = ModelRequest(model=model, history=history, tools=offered)
        answer = await _collect_answer(ports.model, request, episode)
        message = NewMessage(Role.ASSISTANT, answer)
        calls = [part for part in answer if isinstance(part, ToolCall)]
        if not calls:
            await ports.chats.apply(chat_id, FinishTurn(fence, (message,) if answer else ()))
            return
        dispatches = dispatches_for(chat_id, fence, calls, specs)
        committed = await ports.chats.apply(chat_id, CommitStep(fence, (message,), dispatches))
        fence = fence_of(committed)
        episode = ports.live.open(chat_id, fence)
        executions = tuple(
            Execution(chat_id, owner, fence.owner_epoch, each, specs[each.call.tool_name])
            for each in dispatches
        )
        results = await _run_tools(calls, executions, ports.tools, episode)
        committed = await ports.chats.apply(chat_id, CommitStep(fence, results))
        fence = fence_of(committed)


def dispatches_for(
    chat_id: ChatId, fence: Fence, calls: list[ToolCall], specs: dict[str, ToolSpec]
) -> tuple[Dispatch, ...]:
    """Give every call of an offered tool an execution id, derived so that nobody makes it twice."""
    namespace = uuid.UUID(chat_id)
    return tuple(
        Dispatch(
            ExecutionId(str(uuid.uuid5(namespace, f"{fence.history_version}.{index}"))),
            call,
            specs[call.tool_name].executor,
            specs[call.tool_name].journal_generation,
        )
        for index, call in enumerate(calls)
        if call.tool_name in specs
    )


async def _collect_answer(
    model: LanguageModel, request: ModelRequest, episode: Episode
) -> tuple[Part, ...]:
    """Show the answer as it comes and return it whole."""
    parts: list[Part] = []
    async for event in model.stream(request):
        match event:
            case TextDelta(text):
                if parts and isinstance(parts[-1], Text):
                    parts[-1] = Text(parts[-1].text + text)
                else:
                    parts.append(Text(text))
                episode.add(Role.ASSISTANT, len(parts) - 1, Text(text))
            case ReasoningDelta(text):
                if parts and isinstance(parts[-1], Reasoning):
                    parts[-1] = Reasoning(parts[-1].text + text)
                else:
                    parts.append(Reasoning(text))
                episode.add(Role.ASSISTANT, len(parts) - 1, Reasoning(text))
            case ToolCallRequested(call):
                parts.append(call)
                episode.add(Role.ASSISTANT, len(parts) - 1, call)
            case Finished():
                return tuple(parts)
    raise AnswerCutOff


async def _run_tools(
    calls: list[ToolCall], executions: tuple[Execution, ...], tools: Tools, episode: Episode
) -> tuple[NewMessage, ...]:
    """Run all calls at once; return their results in the order of the calls."""
    execution_of = {execution.dispatch.call: execution for execution in executions}

    async def run(index: int, call: ToolCall) -> ToolResult:
        execution = execution_of.get(call)
        outcome = unknown_tool(call) if execution is None else await tools.execute(execution)
        result = ToolResult(
            tool_call_id=call.tool_call_id,
            tool_name=call.tool_name,
            result_json=outcome.result_json,
            outcome=outcome.outcome,
            mcp_server_id=call.mcp_server_id,
        )
        episode.add(Role.TOOL, index, result)
        return result

    async with asyncio.TaskGroup() as group:
        running = [group.create_task(run(index, call)) for index, call in enumerate(calls)]
    return tuple(NewMessage(Role.TOOL, (task.result(),)) for task in running)


def unknown_tool(call: ToolCall) -> Outcome:
    """Return what a model is told that calls a tool it was not offered."""
    problem = {"error": f"there is no tool {call.tool_name}; call one that is offered"}
    return Outcome(ToolOutcome.FAILED, json.dumps(problem))

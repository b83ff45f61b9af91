"""Executes the calls with which a model starts agents and waits for them.

An agent is a child chat whose id is derived from the call that started it, so that a call which is
repeated after a crash starts nothing twice. A call that waits is suspended: the chat rests without
a slot, and `AgentWaits` lets it go on.
"""

import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Final, Protocol

from chatd.chats.agent_ids import agent_id_of
from chatd.chats.domain.agents import (
    STOP_AGENT,
    Agent,
    AgentLimits,
    AgentPage,
    AgentsRefused,
    SpawnRequest,
    stop_below,
)
from chatd.chats.domain.chat import ChatState, NewMessage
from chatd.chats.domain.commands import BusyBehavior, Command, SendMessage
from chatd.chats.domain.errors import FenceLost
from chatd.content.domain.messages import ChatMode, MessageOrigin, Role
from chatd.content.domain.parts import Text
from chatd.content.domain.tools import (
    AGENT_PROCESSES,
    APPLY_CHILD_CHANGES,
    LIST_AGENTS,
    LIST_SUBAGENT_MODELS,
    SPAWN_AGENT,
    WAIT_AGENTS,
    Ended,
    Execution,
    Found,
    InputAction,
    InputRequired,
    Outcome,
    PendingKind,
    StillRunning,
    ToolSpec,
)
from chatd.content.domain.turn_context import TurnContext
from chatd.models.domain.profile import ModelChoice
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import ChatId, OwnerClaim, QueuedMessageId
from chatd.primitives.domain.requests import ClientKey
from chatd.tools.agents.changes import Forks, apply_changes
from chatd.tools.agents.inputs import (
    SPECS,
    ApplyInput,
    InterruptInput,
    ListInput,
    ListModelsInput,
    MessageInput,
    ProcessesInput,
    SpawnInput,
    WaitInput,
)
from chatd.tools.agents.processes import AgentProcesses, read_processes
from chatd.tools.agents.types import AgentTypes, is_choice, models_text, types_text
from chatd.tools.agents.views import agent_view, model_fields, model_view
from chatd.tools.workspace.arguments import BadArguments, read
from chatd.tools.workspace.not_ready import not_ready
from chatd.tools.workspace.results import failed, misused, succeeded
from parley.cache import BoundedCache

REQUEST_ID: Final = "agents"
TITLE_WORDS: Final = 6
GO_ON: Final = "Do the work yourself, or wait for the agents that run."
GO_ON_ALONE: Final = "Do the work yourself."
#: While a chat plans it wakes no agent; it starts those that read, and looks at all of them.
#: Changes of forks are shown and not applied.
TEXTS_KEPT_MAX: Final = 64
_OFFERED: Final = {
    ChatMode.ORDINARY: frozenset(spec.name for spec in SPECS),
    ChatMode.PLAN: frozenset(
        {
            SPAWN_AGENT,
            WAIT_AGENTS,
            LIST_AGENTS,
            LIST_SUBAGENT_MODELS,
            APPLY_CHILD_CHANGES,
            AGENT_PROCESSES,
        }
    ),
    ChatMode.EXPLORE: frozenset[str](),
}


class AgentStore(Protocol):
    """The children of chats."""

    async def is_started(self, request: SpawnRequest, limits: AgentLimits) -> bool:
        """Return whether a child exists already, as seen without a lock.

        Raises:
            AgentsRefused: It does not, and the tree has reached a limit.
        """
        ...

    async def spawn(
        self, claim: OwnerClaim, request: SpawnRequest, limits: AgentLimits
    ) -> ChatState | None:
        """Start a child; None if it exists already.

        Raises:
            AgentsRefused: The tree has reached a limit, or the parent is interrupted.
            FenceLost: Another process owns the parent.
        """
        ...

    async def require_budget(self, root_chat_id: ChatId, limits: AgentLimits) -> None:
        """Require that the agents of a tree may work on.

        Raises:
            AgentsRefused: The tree has used up its money, its tokens or its time.
        """
        ...

    async def require_running(self, claim: OwnerClaim) -> None:
        """Require that a chat still runs the turn of a claim.

        Raises:
            AgentsRefused: The chat is interrupted.
            FenceLost: Another process owns the chat, or its turn is over.
        """
        ...

    async def children(self, root_chat_id: ChatId, chat_id: ChatId) -> tuple[Agent, ...]:
        """Return the children of a chat."""
        ...

    async def page(
        self, root_chat_id: ChatId, chat_id: ChatId, length: int, offset: int
    ) -> AgentPage:
        """Return some children of a chat, those that changed last first."""
        ...

    async def below(self, chat_id: ChatId) -> tuple[ChatId, ...]:
        """Return all chats below a chat."""
        ...


class AgentCommands(Protocol):
    """Executes commands on children."""

    async def once(self, chat_id: ChatId, command: Command, key: ClientKey) -> object:
        """Execute a command unless its key was used before.

        Raises:
            AgentsRefused: The chat of the command's claim was interrupted.
            FenceLost: Another process owns that chat.
        """
        ...


class AgentTools:
    """Offers the tools for agents.

    Args:
        store: The children of chats.
        commands: Executes commands on them.
        started: Called with the state of each new child.
        grown: Called with the root of a tree that has a child, each time its start is called: what
            is cached of a chat says whether it is alone.
        limits: The limits of a chat tree.
        forks: The forks in which agents work.
        types: The types of agents.
        processes: Reads the processes of agents.
    """

    names = frozenset(spec.name for spec in SPECS)

    def __init__(
        self,
        store: AgentStore,
        commands: AgentCommands,
        *,
        started: Callable[[ChatState], None],
        grown: Callable[[ChatId], None],
        limits: AgentLimits,
        forks: Forks,
        types: AgentTypes,
        processes: AgentProcesses,
    ) -> None:
        self._processes = processes
        self._forks = forks
        self._types = types
        self._store = store
        self._commands = commands
        self._started = started
        self._grown = grown
        self._limits = limits
        #: The tool that starts agents, by what is said of their types and models.
        self._described: BoundedCache[str, ToolSpec] = BoundedCache(TEXTS_KEPT_MAX)

    async def list_tools(self, context: TurnContext) -> tuple[ToolSpec, ...]:
        """Return the tools that the mode allows, if the chat may start agents."""
        if len(context.ancestor_ids) >= self._limits.depth_max:
            return ()
        names = await self._types.models(context.owner.id)
        left_out = frozenset[str]() if is_choice(names) else frozenset({LIST_SUBAGENT_MODELS})
        offered = _OFFERED[context.mode] - left_out
        types = types_text(context.agent_types) + models_text(names)
        return tuple(
            [
                self._spawning(spec, types) if types and spec.name == SPAWN_AGENT else spec
                for spec in SPECS
                if spec.name in offered
            ]
        )

    def _spawning(self, spec: ToolSpec, types: str) -> ToolSpec:
        """Return the tool that starts agents with a text about their types and models."""
        found = self._described.get(types)
        if found is None:
            found = replace(spec, description=spec.description + types)
            self._described.put(types, found)
        return found

    async def execute(self, execution: Execution) -> Outcome | InputRequired:
        """Execute a call; every refusal is its result."""
        call, mode = execution.dispatch.call, execution.dispatch.mode
        if call.tool_name not in _OFFERED[mode]:
            hint = "Start an agent that reads with spawn_agent, or wait until planning is over."
            return failed(f"{call.tool_name} is not offered in mode {mode}.", "NOT_RUN", hint)
        try:
            match call.tool_name:
                case "spawn_agent":
                    return await self._spawn(execution, read(SpawnInput, call.args_json))
                case "wait_agents":
                    return await self._wait(execution, read(WaitInput, call.args_json))
                case "message_agent":
                    return await self._message(execution, read(MessageInput, call.args_json))
                case "interrupt_agent":
                    return await self._interrupt(execution, read(InterruptInput, call.args_json))
                case "apply_child_changes":
                    given = read(ApplyInput, call.args_json)
                    (agent,) = _chosen(await self._own(execution), [given.agent_id])
                    return await apply_changes(self._store, self._forks, execution, agent, given)
                case "agent_processes":
                    asked = read(ProcessesInput, call.args_json)
                    (agent,) = _chosen(await self._own(execution), [asked.agent_id])
                    return await read_processes(self._processes, execution, agent, asked)
                case "list_subagent_models":
                    read(ListModelsInput, call.args_json)
                    models = await self._types.described_models(execution.owner.id)
                    return succeeded({"models": [model_view(each) for each in models]})
                case _:
                    return await self._list(execution, read(ListInput, call.args_json))
        except BadArguments as error:
            return misused(error)
        except FenceLost:
            raise  # The result would be refused as well: the new owner makes the call.
        except ChatError as error:
            return failed(str(error), "AGENT_UNAVAILABLE", "Call list_agents to see its status.")

    async def find(self, execution: Execution) -> Found:
        """Return what a call waits for; other calls can be repeated, and find what they did."""
        if execution.dispatch.call.tool_name != WAIT_AGENTS:
            return StillRunning()
        found = await self.execute(execution)
        return Ended(found) if isinstance(found, Outcome) else found

    async def cancel(self, execution: Execution) -> None:
        """Do nothing: agents go on until they are interrupted."""

    async def _own(self, execution: Execution) -> tuple[Agent, ...]:
        context = execution.context
        return await self._store.children(context.root_chat_id, context.chat_id)

    async def _views(self, agents: Sequence[Agent]) -> list[dict[str, object]]:
        names = self._types.model_name
        return [agent_view(each, await names(each.model.model_id)) for each in agents]

    async def _list(self, execution: Execution, given: ListInput) -> Outcome:
        context = execution.context
        page = await self._store.page(
            context.root_chat_id, context.chat_id, given.limit, given.offset
        )
        if given.offset and not page.agents:
            raise BadArguments("offset is beyond your last agent", "leave it out, or lower it")
        until = given.offset + len(page.agents)
        return succeeded(
            {
                "agents": await self._views(page.agents),
                "total": page.total,
                "offset": given.offset,
                "has_more": until < page.total,
            }
        )

    async def _spawn(self, execution: Execution, given: SpawnInput) -> Outcome:
        context, execution_id = execution.context, execution.dispatch.execution_id
        if not given.prompt.strip():
            raise BadArguments("prompt is blank", "say what the agent should do")
        chosen = await self._types.choose(execution, given.type, given.report_schema, given.choice)
        is_reading = chosen.is_explorer or execution.dispatch.mode is not ChatMode.ORDINARY
        is_forked = given.isolation == "fork" and not is_reading
        request = SpawnRequest(
            chat_id=agent_id_of(execution_id),
            root_chat_id=context.root_chat_id,
            depth=len(context.ancestor_ids) + 1,
            owner=context.owner,
            title=given.name.strip() or _title_of(given.prompt),
            prompt=given.prompt,
            mode=ChatMode.EXPLORE if is_reading else ChatMode.ORDINARY,
            model=chosen.model.over(ModelChoice(context.own_model_id)),
            fallback_model_id=context.fallback_model_id,
            mcp_server_ids=context.mcp_server_ids,
            is_forked=is_forked,
            orders=chosen.orders,
        )
        try:
            if (problem := await self._start(execution, request)) is not None:
                return problem
        except AgentsRefused as refusal:
            hint = await self._go_on(execution.context)
            return failed(f"No agent was started: {refusal}.", refusal.reason, hint)
        told: dict[str, object] = {"agent_id": request.chat_id, "name": request.title}
        told["type"] = chosen.orders.type_name or ("explore" if is_reading else "general")
        told |= model_fields(await self._types.model_name(request.model.model_id), request.model)
        if is_forked:
            told["isolation"] = "fork"
        return succeeded(
            {**told, "status": "running"},
            next_step="Start others, go on with your own work, or call wait_agents.",
        )

    async def _go_on(self, context: TurnContext) -> str:
        """Return how a chat goes on that may start no agent."""
        children = await self._store.children(context.root_chat_id, context.chat_id)
        return GO_ON if any(not each.is_done for each in children) else GO_ON_ALONE

    async def _start(self, execution: Execution, request: SpawnRequest) -> Outcome | None:
        """Start a child unless it exists; return why its workspace could not be copied.

        Raises:
            AgentsRefused: The tree has reached a limit.
            FenceLost: Another process owns the parent.
        """
        context = execution.context
        # The fork of a child that exists is in use, and copying for a refused one is in vain.
        is_copied = request.is_forked and not await self._store.is_started(request, self._limits)
        claim = execution.claim
        if is_copied:
            try:
                await self._forks.fork(context.chat_id, request.chat_id, context.owner, claim)
            except FenceLost:
                raise
            except ChatError as error:
                return not_ready(error)
        try:
            state = await self._store.spawn(claim, request, self._limits)
        except AgentsRefused:
            if is_copied:
                await self._forks.discard(request.chat_id)
            raise
        # Also for one that exists: the process that started it may have died before it said so.
        self._grown(request.root_chat_id)
        if state is not None:
            self._started(state)
        return None

    async def _wait(self, execution: Execution, given: WaitInput) -> Outcome | InputRequired:
        """Return the reports, or that the call waits; after an answer it never waits again."""
        waited = _chosen(await self._own(execution), given.agent_ids)
        done = [agent.is_done for agent in waited]
        is_over = any(done) if given.until == "any" and done else all(done)
        answer = execution.answer
        if is_over or answer is not None:
            is_late = not is_over and answer is not None and answer.action is InputAction.CANCEL
            return succeeded({"timed_out": is_late, "agents": await self._views(waited)})
        return InputRequired(
            REQUEST_ID,
            PendingKind.AGENTS,
            f"Waits for {len(waited)} agents.",
            expires_s=float(given.timeout_s),
            agent_ids=tuple(agent.chat_id for agent in waited),
            is_any=given.until == "any",
        )

    async def _message(self, execution: Execution, given: MessageInput) -> Outcome:
        (agent,) = _chosen(await self._own(execution), [given.agent_id])
        context, execution_id = execution.context, execution.dispatch.execution_id
        command = SendMessage(
            NewMessage(
                Role.USER,
                (Text(given.message),),
                created_by=context.owner.id,
                origin=MessageOrigin.AGENT,
            ),
            QueuedMessageId(str(uuid.uuid5(uuid.UUID(execution_id), "queued"))),
            None,
            BusyBehavior.INTERRUPT if given.interrupt else BusyBehavior.QUEUE,
            claim=execution.claim,
        )
        try:
            await self._store.require_budget(context.root_chat_id, self._limits)
            await self._commands.once(agent.chat_id, command, _key(execution))
        except AgentsRefused as refusal:
            return failed(f"Nothing was sent: {refusal}.", refusal.reason, GO_ON)
        return succeeded({"agent_id": agent.chat_id, "name": agent.name, "sent": True})

    async def _interrupt(self, execution: Execution, given: InterruptInput) -> Outcome:
        (agent,) = _chosen(await self._own(execution), [given.agent_id])
        commands, key = self._commands, _key(execution)
        stop = replace(STOP_AGENT, claim=execution.claim)
        try:
            await commands.once(agent.chat_id, stop, key)
            await stop_below(
                self._store, agent.chat_id, lambda each: commands.once(each, stop, key)
            )
        except AgentsRefused as refusal:
            hint = "Call list_agents to see which agents still run."
            return failed(f"Not all was stopped: {refusal}.", refusal.reason, hint)
        return succeeded({"agent_id": agent.chat_id, "interrupted": not agent.is_done})


def _key(execution: Execution) -> ClientKey:
    """Return the key under which a call reaches a child once."""
    args = execution.dispatch.call.args_json
    return ClientKey(execution.dispatch.execution_id, sha256(args.encode()).digest())


def _chosen(own: Sequence[Agent], agent_ids: Sequence[str]) -> tuple[Agent, ...]:
    """Return the agents with these ids, all if there are none.

    Raises:
        BadArguments: One of them is not an agent of this chat, or there are none at all.
    """
    if not own:
        raise BadArguments("there are no agents", "call spawn_agent first")
    by_id = {agent.chat_id: agent for agent in own}
    wanted = [ChatId(each.strip().lower()) for each in dict.fromkeys(agent_ids)] or list(by_id)
    for each in wanted:
        if each not in by_id:
            problem = f"{json.dumps(each[:64])} is no agent of this chat"
            raise BadArguments(problem, "use an agent_id from list_agents")
    return tuple(by_id[each] for each in wanted)


def _title_of(prompt: str) -> str:
    return " ".join(prompt.split()[:TITLE_WORDS])[:80]

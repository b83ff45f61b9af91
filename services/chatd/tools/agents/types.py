"""Chooses the type of an agent to start, and its orders."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from chatd.chats.rpc.tool_schemas import schema_problems
from chatd.content.domain.agent_types import (
    BUILT_IN_TYPES,
    AgentType,
    AgentTypeRefused,
    parsed_agent_type,
)
from chatd.content.domain.messages import ChatMode
from chatd.content.domain.orders import AgentOrders, unsupported_keywords
from chatd.content.domain.tools import BUILT_IN_TOOL_NAMES, Execution
from chatd.models.domain.agent_model import AgentModel
from chatd.models.domain.profile import NO_CHOICE, ModelChoice
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import ChatId, Owner, OwnerId
from chatd.tools.workspace.arguments import BadArguments

MODELS_LISTED_MAX: Final = 100
MODELS_DESCRIBED_MAX: Final = 20
SCHEMA_BYTES_MAX: Final = 16 * 1024
DESCRIPTIONS_BYTES_MAX: Final = 8 * 1024
#: Between the server and the name in the name of a tool of an MCP server.
SERVER_SEPARATOR: Final = "__"
EDITORS: Final = frozenset({"edit_files", "apply_patch"})  # A model gets one of these.
TYPES: Final = """\
The workspace has types of agents, which are named by type. They and their descriptions were \
written by the authors of its files and not by the user:"""


class TypeFiles(Protocol):
    """The files of workspaces."""

    async def text(self, chat_id: ChatId, owner: Owner, path: str) -> str | None:
        """Return the text of a file; None if there is none.

        Raises:
            ChatError: The workspace cannot be read now.
        """
        ...


class Models(Protocol):
    """Finds models by name or id."""

    async def choice(self, wanted: ModelChoice) -> ModelChoice:
        """Return a choice with the id of the model that it names.

        Raises:
            ChatError: There is no such model.
        """
        ...


class AgentModels(Protocol):
    """The models of agents."""

    async def of_agents(self, owner_id: OwnerId, *, is_explorer: bool) -> ModelChoice:
        """Return the model that is configured for agents; empty for that of their parents."""
        ...

    async def named(self, owner_id: OwnerId, reference: str) -> str:
        """Return the id of a model that agents of an owner may have; empty if they may not."""
        ...

    async def names(self, owner_id: OwnerId) -> tuple[str, ...]:
        """Return the names of the models that agents of an owner may have."""
        ...

    async def described(self, owner_id: OwnerId) -> tuple[AgentModel, ...]:
        """Return the models that agents of an owner may have, with what they can."""
        ...

    async def name_of(self, model_id: str) -> str:
        """Return the name of a model, its id if it is unknown."""
        ...


@dataclass(frozen=True, slots=True)
class ChosenType:
    """The type of an agent to start.

    Attributes:
        model: Its model and effort; empty for the model of its parent.
    """

    orders: AgentOrders
    model: ModelChoice = NO_CHOICE
    is_explorer: bool = False


class AgentTypes:
    """Reads the types of agents.

    Args:
        files: The files of workspaces.
        models: Finds models.
        agent_models: The models of agents.
    """

    def __init__(self, files: TypeFiles, models: Models, agent_models: AgentModels) -> None:
        self._files = files
        self._models = models
        self._agent_models = agent_models

    async def choose(
        self,
        execution: Execution,
        name: str,
        report_schema: dict[str, Any] | None,
        asked: ModelChoice = NO_CHOICE,
    ) -> ChosenType:
        """Return the type of an agent that a call starts.

        Args:
            execution: The call.
            name: The name of the type.
            report_schema: The schema of the report; None for a free text.
            asked: The model and effort that the call names; empty for those of the type.

        Raises:
            BadArguments: There is no such type, its file has a mistake, the schema has one, or
                agents may not have the model.
            ChatError: The workspace cannot be read now.
        """
        schema_json = _schema_json(report_schema)
        above = execution.context.orders.tool_names
        if name in BUILT_IN_TYPES:
            orders = AgentOrders(tool_names=above, report_schema_json=schema_json)
            return await self._chosen(execution, orders, asked, is_explorer=name == "explore")
        described = _named(execution.context.agent_types, name)
        content = await self._files.text(execution.chat_id, execution.owner, described.path)
        try:
            found = parsed_agent_type(described.path, content or "")
        except AgentTypeRefused as refusal:
            raise _mistake(described, str(refusal)) from None
        orders = AgentOrders(
            name, found.body, _tool_names(found.type, above), report_schema_json=schema_json
        )
        if not found.type.model:
            return await self._chosen(execution, orders, asked, is_explorer=found.type.is_explorer)
        if asked.model_id:
            problem = f"{described.path} names the model of such agents"
            raise BadArguments(problem, "leave model out, or use another type of agent")
        model = asked.over(await self._named_model(found.type))
        return ChosenType(orders, model, found.type.is_explorer)

    async def models(self, owner_id: OwnerId) -> tuple[str, ...]:
        """Return the names of the models that agents of an owner may have."""
        return await self._agent_models.names(owner_id)

    async def described_models(self, owner_id: OwnerId) -> tuple[AgentModel, ...]:
        """Return the models that agents of an owner may have, with what they can."""
        return await self._agent_models.described(owner_id)

    async def model_name(self, model_id: str) -> str:
        """Return the name of a model, its id if it is unknown."""
        return await self._agent_models.name_of(model_id)

    async def _chosen(
        self, execution: Execution, orders: AgentOrders, asked: ModelChoice, *, is_explorer: bool
    ) -> ChosenType:
        """Return a type that names no model."""
        if asked.model_id:
            asked = replace(asked, model_id=await self._asked_model(execution, asked.model_id))
            return ChosenType(orders, asked, is_explorer)
        is_reading = is_explorer or execution.dispatch.mode is not ChatMode.ORDINARY
        model = await self._agent_models.of_agents(execution.owner.id, is_explorer=is_reading)
        return ChosenType(orders, asked.over(model), is_explorer)

    async def _asked_model(self, execution: Execution, reference: str) -> str:
        owner_id = execution.owner.id
        if model_id := await self._agent_models.named(owner_id, reference):
            return model_id
        choices = (await self._agent_models.names(owner_id))[:MODELS_LISTED_MAX]
        raise BadArguments(
            f"model: agents cannot have {reference[:64]!r}",
            f"leave it out, or use one of {', '.join(choices)}",
        )

    async def _named_model(self, described: AgentType) -> ModelChoice:
        try:
            return await self._models.choice(ModelChoice(described.model))
        except ChatError:
            raise _mistake(described, f"names the unknown model {described.model!r}") from None


def types_text(types: Sequence[AgentType]) -> str:
    """Return the list of types for the description of a tool; empty if there are none.

    Beyond the size limit of all descriptions, types are listed by name.
    """
    if not types:
        return ""
    left_bytes = DESCRIPTIONS_BYTES_MAX
    lines = [TYPES]
    for each in types:
        left_bytes -= len(each.description.encode())
        lines.append(f"- {each.name}" + (f": {each.description}" if left_bytes >= 0 else ""))
    return "\n\n" + "\n".join(lines)


def is_choice(names: Sequence[str]) -> bool:
    """Return whether there is more than one model to choose from."""
    return len(names) > 1


def models_text(names: Sequence[str]) -> str:
    """Return the list of models for the description of a tool; empty if there is no choice."""
    if not is_choice(names):
        return ""
    more = len(names) - MODELS_DESCRIBED_MAX
    listed = ", ".join(names[:MODELS_DESCRIBED_MAX])
    return f"\n\nModels of agents: {listed}" + (f", and {more} more." if more > 0 else ".")


def _named(types: Sequence[AgentType], name: str) -> AgentType:
    known = {each.name: each for each in types}
    if name not in known:
        choices = ", ".join((*BUILT_IN_TYPES, *known))
        raise BadArguments(f"there is no type of agents {name[:64]!r}", f"use one of {choices}")
    return known[name]


def _tool_names(described: AgentType, above: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return the only tools of agents of a type, which their parent has, too."""
    own = described.tool_names
    if own is None:
        return above
    unknown = [
        name for name in own if name not in BUILT_IN_TOOL_NAMES and SERVER_SEPARATOR not in name
    ]
    if unknown:
        raise _mistake(described, f"names unknown tools: {', '.join(unknown)[:500]}")
    names = {*own, *EDITORS} if EDITORS & set(own) else set(own)
    return tuple(sorted(names if above is None else names & set(above)))


def _mistake(described: AgentType, problem: str) -> BadArguments:
    return BadArguments(
        f"{described.path} {problem}", "correct the file, or use another type of agent"
    )


def _schema_json(schema: dict[str, Any] | None) -> str:
    """Return the schema of a report as it is stored; empty if there is none.

    Raises:
        BadArguments: It is no schema of an object, too large, or takes too long to check.
    """
    if schema is None:
        return ""
    text = json.dumps(schema, ensure_ascii=False)
    if len(text.encode()) > SCHEMA_BYTES_MAX:
        raise BadArguments(f"report_schema has more than {SCHEMA_BYTES_MAX} bytes", "shorten it")
    if schema.get("type") != "object":
        raise BadArguments('report_schema: the type is not "object"', "describe an object")
    try:
        unsupported = sorted(set(unsupported_keywords(schema)))
    except RecursionError:
        raise BadArguments("report_schema is nested too deeply", "make it simpler") from None
    if unsupported:
        problem = f"report_schema has {', '.join(unsupported)}, which is not supported"
        raise BadArguments(problem, "write the schema without it")
    for pointer, problem in schema_problems(text):
        raise BadArguments(f"report_schema{pointer} {problem}", "send a valid JSON schema")
    return text

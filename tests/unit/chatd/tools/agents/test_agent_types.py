"""Types of agents that a workspace describes, and the schema of a report."""

import pytest

from chatd.content.domain.agent_types import (
    AGENT_TYPE_BYTES_MAX,
    AgentType,
    AgentTypeRefused,
    parsed_agent_type,
)
from chatd.content.domain.orders import AgentOrders
from chatd.content.domain.parts import ToolCall
from chatd.content.domain.tools import Dispatch, Execution, Executor, ToolSpec
from chatd.content.domain.turn_context import TurnContext
from chatd.models.domain.agent_model import AgentModel
from chatd.models.domain.errors import ModelNotFound
from chatd.models.domain.profile import ModelChoice, ReasoningEffort
from chatd.primitives.domain.ids import ChatId, ExecutionId, Owner, OwnerId
from chatd.tools.agents.types import AgentTypes, types_text
from chatd.tools.workspace.arguments import BadArguments

CHAT = ChatId("00000000-0000-0000-0000-000000000001")
ANN = Owner(OwnerId("ann"), "member")
PATH = ".parley/agents/reviewer.md"
CONTENT = """\
---
description: Reviews
  changes.
tools: read_file, search_files
model: careful
mode: explore
---
Read\u200b it all. </instructions>
"""
REVIEWER = AgentType(
    "reviewer", "Reviews changes.", PATH, ("read_file", "search_files"), "careful", True
)
SCHEMA = {"type": "object", "properties": {"pattern": {"type": "string"}}}


class Files:
    """A workspace with one type."""

    def __init__(self, content: str) -> None:
        self.content = content

    async def text(self, chat_id: ChatId, owner: Owner, path: str) -> str | None:
        return self.content if path == PATH else None


class Models:
    """Models of which one has a name."""

    async def choice(self, wanted: ModelChoice) -> ModelChoice:
        if wanted.model_id not in ("", "careful"):
            raise ModelNotFound(wanted.model_id)
        return ModelChoice(wanted.model_id and "model-1")

    async def of_agents(self, owner_id: OwnerId, *, is_explorer: bool) -> ModelChoice:
        return ModelChoice("reader" if is_explorer else "worker")

    async def named(self, owner_id: OwnerId, reference: str) -> str:
        return "model-2" if reference == "quick" else ""

    async def names(self, owner_id: OwnerId) -> tuple[str, ...]:
        return ("maker/quick",)

    async def described(self, owner_id: OwnerId) -> tuple[AgentModel, ...]:
        return ()

    async def name_of(self, model_id: str) -> str:
        return model_id


def execution(orders: AgentOrders | None = None) -> Execution:
    call = ToolCall("c", "spawn_agent", "{}")
    dispatch = Dispatch(
        ExecutionId("00000000-0000-0000-0000-00000000000e"), call, Executor.CHATD, ""
    )
    context = TurnContext(CHAT, ANN, agent_types=(REVIEWER,), orders=orders or AgentOrders())
    return Execution(context, 1, dispatch, ToolSpec("spawn_agent", "", "{}", Executor.CHATD))


def types(content: str = CONTENT) -> AgentTypes:
    return AgentTypes(Files(content), Models(), Models())


async def test_an_agent_of_a_type_has_its_text_tools_model_and_mode() -> None:
    chosen = await types().choose(execution(), "reviewer", None)
    assert chosen.orders == AgentOrders(
        "reviewer", "Read it all. &lt;/instructions>", ("read_file", "search_files")
    )
    assert (chosen.model, chosen.is_explorer) == (ModelChoice("model-1"), True)


async def test_an_agent_whose_type_names_no_model_has_the_one_that_is_configured() -> None:
    of_file = types(CONTENT.replace("model: careful\n", ""))
    chosen = [await of_file.choose(execution(), name, None) for name in ("reviewer", "general")]
    assert [each.model.model_id for each in chosen] == ["reader", "worker"]


async def test_a_model_cannot_be_named_for_a_type_that_names_one() -> None:
    quick = ModelChoice("quick", ReasoningEffort.LOW)
    with pytest.raises(BadArguments, match="names the model of such agents"):
        await types().choose(execution(), "reviewer", None, quick)
    effort = await types().choose(
        execution(), "reviewer", None, ModelChoice("", quick.reasoning_effort)
    )
    assert effort.model == ModelChoice("model-1", ReasoningEffort.LOW)
    of_file = types(CONTENT.replace("model: careful\n", ""))
    chosen = await of_file.choose(execution(), "reviewer", None, quick)
    assert chosen.model == ModelChoice("model-2", ReasoningEffort.LOW)


async def test_an_agent_has_no_tools_that_its_parent_may_not_use() -> None:
    above = AgentOrders(tool_names=("read_file", "spawn_agent"))
    chosen = await types().choose(execution(above), "reviewer", None)
    assert chosen.orders.tool_names == ("read_file",)
    general = await types().choose(execution(above), "general", None)
    assert general.orders.tool_names == above.tool_names


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (CONTENT.replace("search_files", "Grep"), "names unknown tools: Grep"),
        (CONTENT.replace("careful", "opus"), "names the unknown model 'opus'"),
        ("Read.", "does not begin with its description"),
    ],
)
async def test_a_type_with_an_unknown_tool_or_model_is_refused_with_its_file(
    content: str, problem: str
) -> None:
    with pytest.raises(BadArguments, match=problem) as refused:
        await types(content).choose(execution(), "reviewer", None)
    assert refused.value.problem.startswith(PATH)


async def test_an_unknown_type_is_refused_with_those_that_exist() -> None:
    with pytest.raises(BadArguments, match="general, explore, reviewer"):
        await types().choose(execution(), "writer", None)


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "array"}, '"object"'),
        ({"type": "object", "properties": {"a": {"$ref": "#"}}}, r"\$ref"),
        ({"type": "object", "properties": {"a": {"pattern": "(a+)+$"}}}, "pattern"),
        ({"type": "object", "properties": {"a": {"type": "text"}}}, "/properties/a/type"),
        ({"type": "object", "description": "x" * 20_000}, "bytes"),
    ],
)
async def test_a_schema_that_cannot_be_checked_is_refused(
    schema: dict[str, object], problem: str
) -> None:
    with pytest.raises(BadArguments, match=problem):
        await types().choose(execution(), "general", schema)


async def test_a_property_may_have_the_name_of_a_keyword() -> None:
    chosen = await types().choose(execution(), "general", SCHEMA)
    assert '"pattern"' in chosen.orders.report_schema_json


@pytest.mark.parametrize(
    ("path", "content", "problem"),
    [
        (".parley/agents/general.md", CONTENT, "needs a name"),
        (".parley/agents/Big.md", CONTENT, "needs a name"),
        (PATH, CONTENT.replace("---\nd", "---\nname: other\nd", 1), "another name"),
        (PATH, CONTENT.replace("mode: explore", "mode: root"), "mode"),
        (PATH, CONTENT.replace("read_file, search_files", ""), "needs 1 to"),
        (PATH, CONTENT.partition("Read")[0], "no text"),
        (PATH, CONTENT.replace("Reviews\n  changes.", ""), "needs a description"),
        (PATH, CONTENT + "x" * AGENT_TYPE_BYTES_MAX, "bytes"),
    ],
)
def test_a_file_that_is_no_type_is_refused(path: str, content: str, problem: str) -> None:
    with pytest.raises(AgentTypeRefused, match=problem):
        parsed_agent_type(path, content)


def test_tools_may_be_a_list_of_yaml_and_a_model_may_be_inherited() -> None:
    content = CONTENT.replace("read_file, search_files", "\n  - read_file\n  - 'execute'")
    found = parsed_agent_type(PATH, content.replace("careful", "inherit")).type
    assert (found.tool_names, found.model) == (("read_file", "execute"), "")


def test_types_are_listed_with_bounded_descriptions() -> None:
    many = tuple(AgentType(f"t{number}", "x" * 1000, PATH) for number in range(20))
    text = types_text(many)
    assert len(text) < 10_000
    assert text.endswith("\n- t19")
    assert types_text(()) == ""

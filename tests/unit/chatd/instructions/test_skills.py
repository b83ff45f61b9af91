"""Skills: how their files are read, named and refused, and how a model reads them."""

import json

import pytest

from chatd.content.domain.parts import Skill, ToolCall, ToolOutcome
from chatd.content.domain.skills import (
    SkillRefused,
    SkillText,
    is_inside,
    offered_skills,
    parsed_skill,
)
from chatd.content.domain.tools import Dispatch, Execution, Executor, NeverSeen, Outcome
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.errors import ResourceNotFound
from chatd.primitives.domain.ids import ChatId, ExecutionId, Owner, OwnerId
from chatd.tools.skills import SPECS, SkillTools

CHAT = ChatId("00000000-0000-0000-0000-000000000001")
ANN = Owner(OwnerId("ann"), "member")
HEAD = "---\nname: {}\ndescription: How to deploy.\n---\n"
CONTENT = f"{HEAD.format('deploy')}<!-- hidden -->\nPush\u200b it.\n"
DIRECTORY = ".agents/skills/deploy"


class Personal:
    """The skills of a user."""

    async def body(self, owner_id: OwnerId, name: str) -> str:
        if (owner_id, name) != (ANN.id, "deploy"):
            raise ResourceNotFound("skill", name)
        return "Ask first."


class Files:
    """The files of a workspace."""

    async def text(self, chat_id: ChatId, owner: Owner, path: str) -> str | None:
        return {f"{DIRECTORY}/{name}": text for name, text in FILES.items()}.get(path)

    async def paths(self, chat_id: ChatId, owner: Owner, directory: str) -> tuple[str, ...]:
        return (*FILES, ".hidden")


FILES = {"SKILL.md": CONTENT, "steps/one.md": "Fi\u200brst."}
BOTH = offered_skills((Skill("deploy", "Mine."),), (Skill("deploy", "Ours.", DIRECTORY),))


async def outcome(tool: str, args: object, skills: tuple[Skill, ...] = BOTH) -> Outcome:
    call = ToolCall("c", tool, json.dumps(args))
    execution_id = ExecutionId("00000000-0000-0000-0000-00000000000e")
    dispatch = Dispatch(execution_id, call, Executor.CHATD, "")
    context = TurnContext(CHAT, ANN, skills=skills)
    execution = Execution(context, 1, dispatch, SPECS[0])
    tools = SkillTools(Personal(), Files())
    assert await tools.find(execution) == NeverSeen()
    ended = await tools.execute(execution)
    assert isinstance(ended, Outcome)
    return ended


async def told(tool: str, args: object) -> dict[str, object]:
    found: dict[str, object] = json.loads((await outcome(tool, args)).result_json)
    return found


def test_a_skill_is_read_without_what_a_person_does_not_see() -> None:
    assert parsed_skill(CONTENT) == SkillText("deploy", "How to deploy.", "Push it.")
    folded = '---\r\nname: "a-b"\r\ndescription: >\r\n  One\r\n  two.\r\nmore: x\r\n---\r\nText'
    assert parsed_skill(folded) == SkillText("a-b", "One two.", "Text")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("Push it.", "does not begin with"),
        (f"{HEAD.format('De ploy')}x", "needs a name"),
        ("---\nname: deploy\n---\nx", "needs a description"),
        (HEAD.format("deploy") + "<!-- x -->", "has no text"),
        (HEAD.format("deploy") + "x" * 65_536, "has more than 65536 bytes"),
    ],
)
def test_what_is_no_skill_is_refused(content: str, problem: str) -> None:
    with pytest.raises(SkillRefused, match=problem):
        parsed_skill(content)


def test_equal_names_are_told_apart_by_their_source() -> None:
    assert [skill.name for skill in BOTH] == ["personal/deploy", "workspace/deploy"]
    (alone,) = offered_skills((), (Skill("deploy", "Ours.", DIRECTORY),))
    assert alone.name == "deploy"


async def test_a_skill_is_read_with_its_files() -> None:
    assert await told("read_skill", {"name": "personal/deploy"}) == {
        "ok": True,
        "name": "personal/deploy",
        "body": "Ask first.",
    }
    assert await told("read_skill", {"name": "workspace/deploy"}) == {
        "ok": True,
        "name": "workspace/deploy",
        "directory": DIRECTORY,
        "files": ["steps/one.md"],
        "body": "Push it.",
    }
    read = await told("read_skill_file", {"name": "workspace/deploy", "path": "steps/one.md"})
    assert read["content"] == "First."


@pytest.mark.parametrize(
    ("tool", "args", "hint"),
    [
        ("read_skill", {"name": "deploy"}, "personal/deploy, workspace/deploy"),
        ("read_skill", {"name": "x"}, "list of skills"),
        ("read_skill_file", {"name": "personal/deploy", "path": "a"}, "read_skill has all"),
        ("read_skill_file", {"name": "workspace/deploy", "path": "../a"}, "from read_skill"),
        ("read_skill_file", {"name": "workspace/deploy", "path": "gone"}, "from read_skill"),
    ],
)
async def test_what_is_not_there_is_refused_with_a_hint(tool: str, args: object, hint: str) -> None:
    ended = await outcome(tool, args)
    assert ended.outcome is ToolOutcome.FAILED
    assert hint in json.loads(ended.result_json)["hint"]


async def test_a_skill_that_is_gone_is_unavailable() -> None:
    gone = (Skill("old", "", ".agents/skills/old"), Skill("lost", ""))
    for name in ("old", "lost"):
        ended = await outcome("read_skill", {"name": name}, gone)
        assert json.loads(ended.result_json)["reason"] == "SKILL_UNAVAILABLE"


async def test_the_tools_are_offered_only_if_there_are_skills() -> None:
    tools = SkillTools(Personal(), Files())
    assert await tools.list_tools(TurnContext(CHAT, ANN)) == ()
    assert await tools.list_tools(TurnContext(CHAT, ANN, skills=BOTH)) == SPECS


def test_paths_stay_inside_of_a_skill() -> None:
    paths = ["a", "a/b", "/a", "../a", "a/../b", ".git", "a//b", "a\\b", ""]
    assert [path for path in paths if is_inside(path)] == ["a", "a/b"]

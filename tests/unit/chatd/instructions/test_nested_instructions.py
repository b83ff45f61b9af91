"""Instruction files of subdirectories: given with the first result from there, and once."""

import json
from dataclasses import dataclass, field

import pytest

from chatd.content.domain.messages import Role
from chatd.content.domain.parts import ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.prompts import PromptMessage
from chatd.content.domain.tools import (
    Dispatch,
    Execution,
    Executor,
    Found,
    NeverSeen,
    Outcome,
    ToolSpec,
)
from chatd.content.domain.turn_context import TurnContext
from chatd.instructions.domain.nested import FIELD, NESTED_BYTES_MAX, entered_directories
from chatd.instructions.engine.nested import NestedInstructionTools
from chatd.primitives.domain.ids import ChatId, ExecutionId, Owner, OwnerId
from chatd.workspaces.domain.errors import NodeLost

CHAT = ChatId("00000000-0000-0000-0000-000000000001")
ANN = Owner(OwnerId("ann"), "member")
SPEC = ToolSpec("read_file", "", "{}", Executor.TOOLRUNNER)


@dataclass
class Files:
    """A workspace with files."""

    texts: dict[str, str]
    reads: list[str] = field(default_factory=list)
    is_lost: bool = False
    root: str = "/srv/files"

    async def root_path(self, chat_id: ChatId) -> str:
        return self.root

    async def text(self, chat_id: ChatId, owner: Owner, path: str) -> str | None:
        if self.is_lost:
            raise NodeLost("node")
        self.reads.append(path)
        return self.texts.get(path)


class Tools:
    """Tools that always succeed, unless a test says otherwise."""

    outcome = ToolOutcome.DONE

    async def list_tools(self, context: TurnContext) -> tuple[ToolSpec, ...]:
        return (SPEC,)

    async def execute(self, execution: Execution) -> Outcome:
        return Outcome(self.outcome, '{"ok": true}')

    async def find(self, execution: Execution) -> Found:
        return NeverSeen()

    async def cancel(self, execution: Execution) -> None:
        pass


class Stage:
    """A chat whose model sees the results that are added to its prompt."""

    def __init__(self, **texts: str) -> None:
        self.files = Files({name.replace("__", "/") + "/AGENTS.md": t for name, t in texts.items()})
        self.wrapped = Tools()
        self.tools = NestedInstructionTools(self.wrapped, self.files)
        self.prompt: tuple[PromptMessage, ...] = ()
        self.version = 1

    async def read(self, path: str, budget_bytes: int = 100_000) -> list[tuple[str, str]]:
        """Return the instructions in the result of a call."""
        call = ToolCall("c", SPEC.name, json.dumps({"path": path}))
        execution_id = ExecutionId("00000000-0000-0000-0000-00000000000e")
        dispatch = Dispatch(execution_id, call, Executor.TOOLRUNNER, "")
        context = TurnContext(CHAT, ANN, history_version=self.version, prompt=lambda: self.prompt)
        execution = Execution(context, 1, dispatch, SPEC, budget_bytes)
        ended = await self.tools.execute(execution)
        assert isinstance(ended, Outcome)
        self.last = ended.result_json
        told = json.loads(ended.result_json).get(FIELD, ())
        return [(each["instructions_from"], each["content"]) for each in told]

    def see(self) -> None:
        """Let the model see the last result."""
        result = ToolResult("c", SPEC.name, self.last, ToolOutcome.DONE)
        self.prompt = (*self.prompt, PromptMessage(Role.TOOL, (result,)))
        self.version += 1


async def test_a_file_is_given_once_while_it_is_in_the_prompt() -> None:
    stage = Stage(a="Outer.", a__b="In\u200bner.")
    outer, inner = ("a/AGENTS.md", "Outer."), ("a/b/AGENTS.md", "Inner.")
    assert await stage.read("a/b/c.py") == [outer, inner]
    assert await stage.read("a/b/d.py") == []  # In the same step.
    await stage.read("x.py")
    stage.version += 1
    assert await stage.read("a/b/c.py") == [outer, inner]  # The model has not seen it.
    stage.see()
    assert await stage.read("a/b/c.py") == []
    stage.prompt = ()  # Compacted.
    assert await stage.read("./a/c.py") == [outer]


async def test_absolute_paths_of_the_workspace_count_like_relative_ones() -> None:
    stage = Stage(a="Outer.")
    assert await stage.read("/srv/files/a/b/c.py") == [("a/AGENTS.md", "Outer.")]
    stage.see()
    assert await stage.read("a/c.py") == []
    assert await stage.read("/srv/files/c.py") == []
    assert await stage.read("/srv/files-of-others/a/c.py") == []
    assert await stage.read("/srv/files/../a/c.py") == []
    assert stage.files.reads == ["a/AGENTS.md", "a/b/AGENTS.md"]
    stage = Stage(a="Outer.")
    stage.files.root = ""
    assert await stage.read("/srv/files/a/b/c.py") == []


async def test_only_the_first_call_in_a_directory_asks_the_node() -> None:
    stage = Stage(a="Outer.")
    for _ in range(3):
        await stage.read("a/b/c.py")
        stage.see()
    assert stage.files.reads == ["a/AGENTS.md", "a/b/AGENTS.md"]


async def test_a_result_stays_within_its_size_limit_and_files_are_cut() -> None:
    stage = Stage(a="x" * 100_000, b="small")
    ((_, content),) = await stage.read("a/c.py")
    assert len(content.encode()) <= NESTED_BYTES_MAX
    assert await stage.read("b/c.py", budget_bytes=100) == []
    assert await stage.read("b/c.py") == [("b/AGENTS.md", "small")]


async def test_a_failed_call_and_a_lost_node_give_nothing() -> None:
    stage = Stage(a="Outer.")
    stage.files.is_lost = True
    assert await stage.read("a/c.py") == []
    stage.files.is_lost = False
    stage.wrapped.outcome = ToolOutcome.FAILED
    assert await stage.read("a/c.py") == []


@pytest.mark.parametrize(
    ("tool", "arguments", "entered"),
    [
        ("read_file", {"path": "a/b/c.py"}, ("a", "a/b")),
        ("read_file", {"path": "c.py"}, ()),
        ("list_files", {"path": "a/b"}, ("a", "a/b")),
        ("execute", {"command": "ls", "workdir": "./a/"}, ("a",)),
        ("edit_files", {"files": [{"path": "a/x"}, {"path": "b/x"}, 3]}, ("a", "b")),
        ("read_file", {"path": "/etc/passwd"}, ()),
        ("read_file", {"path": "a/../../b/c"}, ()),
        ("read_file", {"path": 3}, ()),
        ("read_file", {"path": "/".join("abcdefghijklmnopqrstuvwxyz")}, None),
    ],
)
def test_the_directories_of_a_call_are_read_from_its_arguments(
    tool: str, arguments: dict[str, object], entered: tuple[str, ...] | None
) -> None:
    found = entered_directories(tool, json.dumps(arguments))
    assert len(found) == 16 if entered is None else found == entered
    assert entered_directories(tool, "[") == entered_directories(tool, "[]") == ()

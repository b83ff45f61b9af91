"""Whatever runs for as long as a process does so under supervision."""

import ast
from pathlib import Path

import pytest

from support.source.modules import modules_below, source_of

# The mechanism itself, and programs that are no services: their tasks end with their work.
NO_SERVICES = (
    "libs/parley/tasks",
    "libs/parley/testing/llm_mock",
    "libs/parley/testing/scaletest",
    "libs/parley/cli",
)
# Contexts for the length of one call or of one session, whose owner records the failure, and the
# one server of a process, whose failure must end it.
ALLOWED = {
    "services/gateway/http/server.py",
    "services/mcpgateway/client/sse_transport.py",
    "services/toolrunner/egress/relay.py",
}


def is_task_group(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "TaskGroup"


def lasting_groups(source: str) -> list[int]:
    """Return the lines where a plain task group outlives the function that makes it.

    A failure of one of its tasks would end its owner and so the process. In a function that waits
    for all tasks of the group before it returns, the failure is that function's own.
    """
    tree = ast.parse(source)
    allowed: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.AsyncWith) and not any(
            isinstance(each, ast.Yield) for body in node.body for each in ast.walk(body)
        ):
            allowed |= {each for item in node.items for each in ast.walk(item.context_expr)}
        # A function that starts tasks for its caller, while that one waits for them.
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = (*node.args.args, *node.args.kwonlyargs)
            is_method = bool(arguments) and node.name == "__init__"
            if not is_method:
                for argument in arguments:
                    allowed |= set(ast.walk(argument))
    return sorted(
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and is_task_group(node) and node not in allowed
    )


def modules() -> list[Path]:
    found = modules_below("services", "libs")
    return sorted(path for path in found if not path.as_posix().startswith(NO_SERVICES))


def test_no_plain_task_group_lasts_as_long_as_a_process() -> None:
    found = {
        path.as_posix(): lines
        for path in modules()
        if "TaskGroup" in (source := source_of(path)) and (lines := lasting_groups(source))
    }
    assert {name: lines for name, lines in found.items() if name not in ALLOWED} == {}
    assert found.keys() >= ALLOWED


@pytest.mark.parametrize(
    "source",
    [
        "self._tasks = asyncio.TaskGroup()",
        "stack.enter_async_context(asyncio.TaskGroup())",
        "class A:\n    tasks: asyncio.TaskGroup",
        "class A:\n    def __init__(self, tasks: asyncio.TaskGroup) -> None: ...",
        "async def a():\n    async with asyncio.TaskGroup() as tasks:\n        yield tasks",
    ],
)
def test_each_way_to_keep_a_plain_task_group_is_found(source: str) -> None:
    assert lasting_groups(source) != []


def test_a_group_that_its_function_waits_for_is_no_offence() -> None:
    source = "async def a():\n    async with asyncio.TaskGroup() as tasks:\n        b(tasks)"
    assert lasting_groups(source) == []

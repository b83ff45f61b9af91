"""What one turn costs the database, counted by PostgreSQL for every role that works on it."""

from collections.abc import Iterator

import pytest

from support.stack.faulty_stack import watching
from support.stack.local_stack import LocalStack
from support.stack.turn_costs import turn_costs

pytestmark = pytest.mark.slow

STATEMENTS_MAX = 6
COMMITS = 2
TOOL_COMMITS = 4
#: Its commits, and once in a while who has the key that it was asked with.
TOOL_STATEMENTS_MAX = 5
TURNS = 10
COUNT = "count to 1"
#: How a chat's workspace is looked for, and nothing else.
LOOKUP = "n.address AS node_address"
#: How it is kept how a workspace differs: behind turns, also those of chats that warmed up.
DIFFERENCE = "SET diff_status"
SCRATCH_ID = "00000000-0000-4000-8000-000000000001"


@pytest.fixture(scope="module")
def quiet_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """Give a stack in which nobody does anything else, with as few connections as can be."""
    stack = LocalStack.at(
        tmp_path_factory.mktemp("home"),
        CHATD_DATABASE_CONNECTIONS_MAX="4",
        GATEWAY_DATABASE_CONNECTIONS_MAX="2",
    )
    started = stack.up("--chatd", "1")
    assert started.returncode == 0, started.stdout + started.stderr
    yield stack
    assert stack.parley("down").returncode == 0


async def test_a_plain_turn_on_a_warm_chat_costs_two_commits_and_six_statements(
    quiet_stack: LocalStack,
) -> None:
    async with watching(quiet_stack) as watched:
        chat_id = watched.create(COUNT)
        await watched.until(chat_id, lambda where: where.status == "waiting")
        costs = await turn_costs(watched, chat_id, COUNT, turns=TURNS)
    for cost in costs:
        assert len(cost.statements) <= STATEMENTS_MAX, "\n".join(cost.statements)
        # Not fewer either: then something that a turn needs was mistaken for something else.
        assert cost.commits == COMMITS, "\n".join(cost.statements)
        assert not any(LOOKUP in statement for statement in cost.statements)


async def test_a_turn_with_tools_looks_once_for_a_workspace_that_was_chosen(
    quiet_stack: LocalStack,
) -> None:
    async with watching(quiet_stack) as watched:
        chat_id = watched.create(COUNT)
        await watched.until(chat_id, lambda where: where.status == "waiting")
        watched.request("POST", "/workspaces", {"template_id": SCRATCH_ID, "chat_id": chat_id})
        costs = await turn_costs(watched, chat_id, "run: echo one", turns=4)
    looked = [sum(LOOKUP in statement for statement in cost.statements) for cost in costs]
    assert looked == [1] * 4


async def test_a_turn_with_one_command_costs_four_commits_and_no_other_statement(
    quiet_stack: LocalStack,
) -> None:
    async with watching(quiet_stack) as watched:
        chat_id = watched.create("run: true")
        await watched.until(chat_id, lambda where: where.status == "waiting")
        costs = await turn_costs(watched, chat_id, "run: true", turns=TURNS)
    for cost in costs:
        own = [statement for statement in cost.statements if DIFFERENCE not in statement]
        assert len(own) <= TOOL_STATEMENTS_MAX, "\n".join(own)
        # The message, the call before it leaves, its result with the next step, and the end.
        assert cost.commits == TOOL_COMMITS, "\n".join(cost.statements)

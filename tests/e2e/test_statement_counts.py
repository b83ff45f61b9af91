"""What one turn costs the database, counted by PostgreSQL for every role that works on it."""

import pytest

from support.faulty_stack import FaultyStack, connect_to
from support.local_stack import LocalStack
from support.turn_costs import turn_costs

pytestmark = pytest.mark.slow

STATEMENTS_MAX = 6
COMMITS = 2
TOOL_COMMITS = 4
TOOL_STATEMENTS_MAX = 7
COUNT = "count to 1"


async def test_a_plain_turn_on_a_warm_chat_costs_two_commits_and_six_statements(
    stack: LocalStack,
) -> None:
    connection = await connect_to(stack)
    watched = FaultyStack(stack, connection)
    chat_id = watched.create(COUNT)
    await watched.until(chat_id, lambda where: where.status == "waiting")
    costs = await turn_costs(watched, chat_id, COUNT, turns=5)
    for cost in costs:
        assert len(cost.statements) <= STATEMENTS_MAX, "\n".join(cost.statements)
    # Not fewer either: then something that a turn needs was mistaken for something else.
    assert [cost.commits for cost in costs] == [COMMITS] * 5
    await connection.close()


async def test_a_turn_with_one_command_costs_four_commits_and_seven_statements(
    stack: LocalStack,
) -> None:
    connection = await connect_to(stack)
    watched = FaultyStack(stack, connection)
    chat_id = watched.create("run: true")
    await watched.until(chat_id, lambda where: where.status == "waiting")
    costs = await turn_costs(watched, chat_id, "run: true", turns=5)
    for cost in costs:
        assert len(cost.statements) <= TOOL_STATEMENTS_MAX, "\n".join(cost.statements)
    # The message, the call before it leaves, its result with the next step, and the end.
    assert [cost.commits for cost in costs] == [TOOL_COMMITS] * 5
    await connection.close()

"""Goals of one owner do not keep those of others waiting."""

import asyncio

from chatd.goals.domain.goal import CheckResult, Goal, RestingChat, Verdict
from chatd.goals.engine.pursuit import EVERY_S, GOALS_MAX, GOALS_PER_OWNER_MAX, GoalPursuit
from chatd.goals.store.goals import PostgresGoals
from parley.api.chat.v1 import goal_pb2
from parley.api.chat.v1 import goal_service_pb2 as api
from parley.clock import FakeClock
from support.chatd.chats.chat_people import ANN_ID, BOB_ID, Person
from support.chatd.chats.served_chats import ServedChats

HAVE_A_TURN = "UPDATE chat.goals SET turns_count = 1"


class EndlessChecks:
    """Checks that do not end, and messages that are only counted."""

    def __init__(self) -> None:
        self.checked: list[str] = []
        self.sent: list[str] = []

    async def send(self, goal: Goal, text: str, request_id: str) -> None:
        self.sent.append(goal.owner.id)

    async def check(self, goal: Goal, request_id: str) -> CheckResult | None:
        self.checked.append(goal.owner.id)
        await asyncio.Event().wait()
        return None

    async def judge(self, goal: Goal, chat: RestingChat) -> Verdict:
        raise AssertionError("no goal here has a judge")


async def set_goal(served: ServedChats, person: Person) -> None:
    chat = await person.create()
    await served.finish(chat.id)
    goal = goal_pb2.Goal(text="Mend it.", check_command="sleep 600")
    await person.ask(api.SetGoalRequest(request_id=person.fresh(), chat_id=chat.id, goal=goal))


async def test_checks_that_take_long_leave_places_to_the_goals_of_others(
    served: ServedChats,
) -> None:
    for _ in range(GOALS_MAX + 1):
        await set_goal(served, served.ann)
    await served.pool.execute(HAVE_A_TURN)
    checks, clock = EndlessChecks(), FakeClock()
    pursuit = GoalPursuit(PostgresGoals(served.pool), checks, checks, clock)
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(pursuit.run())
        assert await clock.until_sleeping() == EVERY_S
        assert checks.checked == [ANN_ID] * GOALS_PER_OWNER_MAX
        await set_goal(served, served.bob)
        clock.advance(EVERY_S)
        while not checks.sent:
            await served.pool.fetchval("SELECT 1")
        running.cancel()
    assert checks.sent == [BOB_ID]
    assert checks.checked == [ANN_ID] * GOALS_PER_OWNER_MAX

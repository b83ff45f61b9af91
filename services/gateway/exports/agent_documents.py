"""Of an export: skills, goals and monitors, which chatd shows one by one."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from gateway.api.json_output import to_json
from gateway.streams.chatd_client import Stubs
from parley.api.chat.v1 import context_service_pb2, goal_service_pb2, monitor_service_pb2

CALL_S: Final = 60.0

#: Calls chatd as the user of the export.
Ask = Callable[[Callable[[Stubs], Awaitable[Any]]], Awaitable[Any]]


async def skills_of(ask: Ask) -> object:
    """Return the skills of a user, with their texts."""
    listing = context_service_pb2.ListSkillsRequest()
    listed = await ask(lambda stubs: stubs.context.ListSkills(listing, timeout=CALL_S))
    return [await _skill_of(ask, skill.name) for skill in listed.items]


async def _skill_of(ask: Ask, name: str) -> object:
    request = context_service_pb2.GetSkillRequest(name=name)
    answer = await ask(lambda stubs: stubs.context.GetSkill(request, timeout=CALL_S))
    return to_json(answer.skill)


async def goal_of(ask: Ask, chat_id: str) -> object:
    """Return the goal of a root chat; None if it has none."""
    request = goal_service_pb2.ListGoalsRequest(chat_id=chat_id)
    answer = await ask(lambda stubs: stubs.goals.ListGoals(request, timeout=CALL_S))
    return to_json(answer.goals[0]) if answer.goals else None


async def monitors_of(ask: Ask, chat_id: str) -> object:
    """Return the monitors of a root chat."""
    request = monitor_service_pb2.ListMonitorsRequest(chat_id=chat_id)
    answer = await ask(lambda stubs: stubs.monitors.ListMonitors(request, timeout=CALL_S))
    return to_json(answer)["items"]

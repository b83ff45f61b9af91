"""The owner of a chat dies before, while or after a hook decides or is notified: row A35."""

import asyncio

import pytest

from parley.client import Message, ToolOutcome, ToolResult
from parley.testing.faultpoints import Action
from support.faults.hook_consumers import Consumer, consuming
from support.faults.lab import ONCE, FaultLab
from support.faults.trials import Fault, faults

pytestmark = pytest.mark.slow

RUN = "run: echo @ >> runs"
DENIAL = {"decision": "deny", "reason": "not here"}
ALLOWED: dict[str, str] = {}
#: Before a hook is asked about a call, after it answered, and around the commit of its decision.
DECISIONS = (
    pytest.param("hooks.send", id="before-asking"),
    pytest.param("hooks.sent", id="after-asking", marks=pytest.mark.short),
    pytest.param("CommitStep.before", id="before-commit"),
    pytest.param("CommitStep.after", id="after-commit", marks=pytest.mark.short),
)
PROMPTS = (
    pytest.param("hooks.sent", id="after-asking", marks=pytest.mark.short),
    pytest.param("CreateChat.before", id="before-commit"),
    pytest.param("CreateChat.after", id="after-commit", marks=pytest.mark.short),
)
#: After results are stored and before their events, and before and after the event of the end.
NOTICES = (
    pytest.param("CommitResults.after", ("post_tool_use", "stop"), id="results-stored"),
    pytest.param("hooks.sent", ("post_tool_use",), id="results-sent", marks=pytest.mark.short),
    pytest.param("FinishTurn.before", ("stop",), id="end-sent", marks=pytest.mark.short),
)


async def kill_owner_at(lab: FaultLab, fault: Fault, point: str) -> list[str]:
    """Kill the owner of chats with one call once all of them stand at a point."""
    victim = await lab.victim()
    lab.points.arm(point, Action.HOLD, pid=victim.pid)
    chat_ids = await fault.create_all(await lab.client(victim.address), fault.texts(RUN))
    assert len(chat_ids) == fault.size
    await fault.kill_held(victim, point, chat_ids)
    await fault.at_rest()
    return chat_ids


def results_in(messages: list[Message]) -> list[ToolResult]:
    return [part for each in messages for part in each.content if isinstance(part, ToolResult)]


async def require_refused(fault: Fault, chat_id: str) -> None:
    """Note a problem unless the call of a chat was refused by the hook and did not run."""
    results = results_in(await fault.messages(chat_id))
    outcomes = [result.outcome for result in results]
    if len(results) != 1 or outcomes[0] is ToolOutcome.DONE:
        fault.row.problems.append(f"{chat_id}: the results are {outcomes}")
    elif DENIAL["reason"] not in results[0].result_json:
        fault.row.problems.append(f"{chat_id}: the result is {results[0].result_json}")
    if (fault.lab.workspace(chat_id) / "files" / "runs").exists():
        fault.row.problems.append(f"{chat_id}: a call ran that its hook refuses")


@pytest.mark.row("A35")
@pytest.mark.parametrize("point", DECISIONS)
async def test_a35_a_call_that_a_hook_denies_never_runs_though_its_owner_is_killed(
    lab: FaultLab, point: str
) -> None:
    async with consuming(lab, DENIAL, "pre_tool_use") as consumer:
        async for fault in faults(lab):
            for chat_id in await kill_owner_at(lab, fault, point):
                await require_refused(fault, chat_id)
                consumer.require_one_event(fault, chat_id, "pre_tool_use")


@pytest.mark.row("A35")
@pytest.mark.parametrize("point", DECISIONS)
async def test_a35_a_call_that_a_hook_allows_runs_once_though_its_owner_is_killed(
    lab: FaultLab, point: str
) -> None:
    async with consuming(lab, ALLOWED, "pre_tool_use") as consumer:
        async for fault in faults(lab):
            for chat_id in await kill_owner_at(lab, fault, point):
                (result,) = results_in(await fault.messages(chat_id))
                if result.outcome is not ToolOutcome.DONE:
                    fault.row.problems.append(f"{chat_id}: the result is {result.outcome}")
                consumer.require_one_event(fault, chat_id, "pre_tool_use")


@pytest.mark.row("A35")
@pytest.mark.parametrize(("point", "events"), NOTICES)
async def test_a35_hooks_recognise_repeated_notifications_of_a_killed_owner(
    lab: FaultLab, point: str, events: tuple[str, ...]
) -> None:
    async with consuming(lab, ALLOWED, *events) as consumer:
        async for fault in faults(lab):
            for chat_id in await kill_owner_at(lab, fault, point):
                for event in events:
                    consumer.require_one_event(fault, chat_id, event)


async def create_all_once(lab: FaultLab, fault: Fault, point: str, keyed: dict[str, str]) -> None:
    """Kill the process that creates chats once all creations stand at a point."""
    victim = await lab.victim()
    lab.points.arm(point, Action.HOLD, pid=victim.pid)
    once = await lab.client(victim.address, patience=ONCE)
    async with asyncio.TaskGroup() as tasks:
        for key, text in keyed.items():
            tasks.create_task(fault.create(once, text, key=key))
        await fault.until_many_held(point, len(keyed))
        victim.kill()
    fault.trial(len(keyed))
    lab.points.disarm()


@pytest.mark.row("A35")
@pytest.mark.parametrize("point", PROMPTS)
async def test_a35_a_message_is_accepted_once_though_the_process_is_killed_that_asked_its_hook(
    lab: FaultLab, point: str
) -> None:
    async with consuming(lab, ALLOWED, "user_prompt_submit") as consumer:
        async for fault in faults(lab):
            keyed = {lab.unique(): text for text in fault.texts("count to 5, @")}
            await create_all_once(lab, fault, point, keyed)
            client = await lab.client()
            for key, text in keyed.items():
                assert await fault.create(client, text, key=key) is not None
            assert len(fault.chat_ids) == len(keyed)
            require_accepted(fault, consumer)


def require_accepted(fault: Fault, consumer: Consumer) -> None:
    for chat_id in fault.chat_ids:
        consumer.require_one_event(fault, chat_id, "user_prompt_submit")

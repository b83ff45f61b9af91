"""The owner of a chat dies while it starts an agent, waits for it, merges it or asks for advice.

A turn that is interrupted while a node merges for it is among them: its merge is late.

Row A37 is about agents, row A38 about advice.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest

from parley.client import Parley, ToolOutcome, ToolResult
from parley.testing.faultpoints import Action
from support.faults.lab import FaultLab
from support.faults.trials import Fault, faults

pytestmark = pytest.mark.slow

SPAWN = f"call: spawn_agent {json.dumps({'prompt': 'run: echo child > made', 'isolation': 'fork'})}"
WAIT = "call: wait_agents {}"
ADVICE = 'call: advisor {"question": "Which way?"}'
ADVISOR = "/settings/advisor"
USES_MAX = 3
CHILDREN = "SELECT id::text FROM chat.chats WHERE parent_chat_id = $1::uuid"
FORKS = "SELECT count(*) FROM chat.workspaces WHERE parent_id = $1::uuid"
#: Before and after the call that starts an agent, and the commit that begins the wait for it.
STARTS = (
    pytest.param("tools.execute", SPAWN, id="before-spawn", marks=pytest.mark.short),
    pytest.param("tools.executed", SPAWN, id="after-spawn", marks=pytest.mark.short),
    pytest.param("SuspendCall.before", f"{SPAWN}\n{WAIT}", id="before-wait"),
    pytest.param("SuspendCall.after", f"{SPAWN}\n{WAIT}", id="after-wait", marks=pytest.mark.short),
)
MERGES = (
    pytest.param("tools.execute", marks=pytest.mark.short),
    pytest.param("tools.executed", marks=pytest.mark.short),
)
#: The node has copied the new files of a merge, and not yet decided on it.
STAGED = "merge.staged"
#: Before and after the advisor is asked, and around the commit of its advice.
#: With the number of calls that are charged: one whose advice was not committed is made again.
ADVICES = (
    pytest.param("tools.execute", 1, id="before-advice", marks=pytest.mark.short),
    pytest.param("tools.executed", 2, id="after-advice", marks=pytest.mark.short),
    pytest.param("CommitResults.before", 2, id="before-commit"),
    pytest.param("CommitResults.after", 1, id="after-commit"),
)
ADVISOR_BILLS = """
    SELECT count(*) FROM chat.usage WHERE chat_id = $1::uuid AND purpose = 'advisor'
"""


async def until_agents_rest(fault: Fault, chat_ids: list[str]) -> dict[str, str]:
    """Wait until each chat has exactly one agent, in one fork, that rests; return the agents."""
    agents: dict[str, str] = {}
    for chat_id in chat_ids:
        found = [row[0] for row in await fault.lab.query(CHILDREN, chat_id)]
        ((forks,),) = await fault.lab.query(FORKS, chat_id)
        if (len(found), forks) != (1, 1):
            fault.row.problems.append(f"{chat_id}: agents {found} in {forks} forks")
        agents[chat_id] = found[0]
    await fault.until_all(
        lambda state: state.is_at_rest, "rest of agents", chat_ids=list(agents.values())
    )
    return agents


def require_files(fault: Fault, chat_id: str, expected: dict[str, str]) -> None:
    """Note a problem unless the workspace of a chat has these files."""
    files = fault.lab.workspace(chat_id) / "files"
    found = {path.name: path.read_text() for path in files.iterdir()}
    if found != expected:
        fault.row.problems.append(f"{chat_id}: {found}")


@pytest.mark.row("A37")
@pytest.mark.parametrize(("point", "text"), STARTS)
async def test_a37_an_owner_killed_while_it_starts_or_waits_for_an_agent_has_started_one(
    lab: FaultLab, point: str, text: str
) -> None:
    async for fault in faults(lab):
        victim = await lab.victim()
        client = await lab.client(victim.address)
        lab.points.arm(point, Action.HOLD, pid=victim.pid)
        chat_ids = await fault.create_all(client, [text] * fault.size)
        assert len(chat_ids) == fault.size
        await fault.kill_held(victim, point, chat_ids)
        await fault.at_rest()
        for chat_id, agent_id in (await until_agents_rest(fault, chat_ids)).items():
            require_files(fault, agent_id, {"made": "child\n"})
            require_files(fault, chat_id, {})


async def merged(fault: Fault, client: Parley, agents: dict[str, str], **more: object) -> None:
    """Ask each chat to apply the changes of its agent."""
    for chat_id, agent_id in agents.items():
        step = f"call: apply_child_changes {json.dumps({'agent_id': agent_id, **more})}"
        await fault.send(client, chat_id, step)


@pytest.mark.row("A37")
@pytest.mark.parametrize("point", MERGES)
async def test_a37_a_merge_whose_owner_is_killed_is_completed_once(
    lab: FaultLab, point: str
) -> None:
    async for fault in faults(lab):
        victim = await lab.victim()
        client = await lab.client(victim.address)
        chat_ids = await fault.create_all(client, [f"{SPAWN}\n{WAIT}"] * fault.size)
        await fault.at_rest()
        agents = await until_agents_rest(fault, chat_ids)
        lab.points.arm(point, Action.HOLD, pid=victim.pid)
        await merged(fault, client, agents)
        await fault.kill_held(victim, point, chat_ids)
        await fault.at_rest()
        for chat_id in chat_ids:
            require_files(fault, chat_id, {"made": "child\n"})


@pytest.mark.short
@pytest.mark.row("A37")
@pytest.mark.parametrize("next_files", [{}, {"next": "next\n"}], ids=["rests", "works-on"])
async def test_a37_a_merge_of_an_interrupted_turn_is_not_applied_afterwards(
    lab: FaultLab, next_files: dict[str, str]
) -> None:
    async for fault in faults(lab):
        client = await lab.client()
        chat_ids = await fault.create_all(client, [f"{SPAWN}\n{WAIT}"] * fault.size)
        await fault.at_rest()
        agents = await until_agents_rest(fault, chat_ids)
        lab.points.arm(STAGED, Action.HOLD)
        await merged(fault, client, agents)
        await fault.until_held(STAGED, chat_ids)
        for chat_id in chat_ids:
            fault.expect(chat_id).may_be_cut = True
            await client.interrupt(chat_id)
        await fault.at_rest()
        for chat_id in chat_ids if next_files else ():
            await fault.send(client, chat_id, "run: echo next > next")
        await fault.at_rest()
        fault.trial(len(chat_ids))
        lab.points.disarm()
        # The node looks only after it has ended the merge of the turn before.
        await merged(fault, client, agents, dry_run=True)
        await fault.at_rest()
        for chat_id in chat_ids:
            require_files(fault, chat_id, next_files)
        await merged(fault, client, agents, paths=["made"])
        await fault.at_rest()
        for chat_id in chat_ids:
            require_files(fault, chat_id, {**next_files, "made": "child\n"})


@asynccontextmanager
async def advised(lab: FaultLab) -> AsyncIterator[None]:
    """Let the agents of all processes ask the advisor, until the end."""

    async def set_enabled(is_enabled: bool) -> None:
        body = {"enabled": is_enabled, "uses_per_turn_max": USES_MAX}
        status, _, document = await lab.http("PUT", ADVISOR, body, lab.unique())
        assert status == 200, document

    async def is_offered(client: Parley) -> bool:
        return '"type": "advice"' in await client.ask(ADVICE)

    await set_enabled(True)
    try:
        for address in lab.addresses:
            looked = partial(is_offered, await lab.client(address))
            await lab.until(looked, f"advice from {address}")
        yield
    finally:
        await set_enabled(False)


async def require_advice(fault: Fault, chat_id: str, calls: int) -> None:
    """Note a problem unless a chat was advised once, used up one use, and was charged for all."""
    results = [
        part
        for message in await fault.messages(chat_id)
        for part in message.content
        if isinstance(part, ToolResult)
    ]
    told = [(each.outcome, json.loads(each.result_json)) for each in results]
    found = [(outcome, each.get("type"), each.get("remaining_uses")) for outcome, each in told]
    if found != [(ToolOutcome.DONE, "advice", USES_MAX - 1)]:
        fault.row.problems.append(f"{chat_id}: the advice is {told}")
    ((bills,),) = await fault.lab.query(ADVISOR_BILLS, chat_id)
    if bills != calls:
        fault.row.problems.append(f"{chat_id}: {bills} bills of the advisor")


@pytest.mark.row("A38")
@pytest.mark.parametrize(("point", "calls"), ADVICES)
async def test_a38_an_owner_killed_while_it_asks_for_advice_leaves_one_advice_and_one_use(
    lab: FaultLab, point: str, calls: int
) -> None:
    async with advised(lab):
        async for fault in faults(lab):
            victim = await lab.victim()
            client = await lab.client(victim.address)
            lab.points.arm(point, Action.HOLD, pid=victim.pid)
            chat_ids = await fault.create_all(client, [ADVICE] * fault.size)
            assert len(chat_ids) == fault.size
            await fault.kill_held(victim, point, chat_ids)
            await fault.at_rest()
            for chat_id in chat_ids:
                await require_advice(fault, chat_id, calls)

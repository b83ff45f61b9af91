"""The owner of a chat dies while it starts an agent, waits for it, or merges it: row A33."""

import json

import pytest

from parley.client import Parley
from parley.testing.faultpoints import Action
from support.faults.lab import FaultLab
from support.faults.trials import Fault, faults

pytestmark = pytest.mark.slow

SPAWN = f"call: spawn_agent {json.dumps({'prompt': 'run: echo child > made', 'isolation': 'fork'})}"
WAIT = "call: wait_agents {}"
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


@pytest.mark.row("A33")
@pytest.mark.parametrize(("point", "text"), STARTS)
async def test_a33_an_owner_killed_while_it_starts_or_waits_for_an_agent_has_started_one(
    lab: FaultLab, point: str, text: str
) -> None:
    async for fault in faults(lab):
        victim = await lab.victim()
        client = await lab.client(victim.address)
        lab.points.arm(point, Action.HOLD, pid=victim.pid)
        chat_ids = await fault.create_all(client, [text] * fault.size)
        assert len(chat_ids) == fault.size
        await fault.until_held(point, chat_ids)
        victim.kill()
        fault.trial(len(chat_ids))
        lab.points.disarm()
        await fault.at_rest()
        for chat_id, agent_id in (await until_agents_rest(fault, chat_ids)).items():
            require_files(fault, agent_id, {"made": "child\n"})
            require_files(fault, chat_id, {})


async def merged(fault: Fault, client: Parley, agents: dict[str, str]) -> None:
    """Ask each chat to apply the changes of its agent."""
    for chat_id, agent_id in agents.items():
        step = f"call: apply_child_changes {json.dumps({'agent_id': agent_id})}"
        await fault.send(client, chat_id, step)


@pytest.mark.row("A33")
@pytest.mark.parametrize("point", MERGES)
async def test_a33_a_merge_whose_owner_is_killed_is_completed_once(
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
        await fault.until_held(point, chat_ids)
        victim.kill()
        fault.trial(len(chat_ids))
        lab.points.disarm()
        await fault.at_rest()
        for chat_id in chat_ids:
            require_files(fault, chat_id, {"made": "child\n"})

"""The process that reverts a chat dies in each phase: row A31."""

import asyncio

import pytest

from parley.client import Parley
from parley.testing.faultpoints import Action
from support.faults.lab import FaultLab
from support.faults.trials import Fault, faults

pytestmark = pytest.mark.slow

WRITE = "run: echo first > file; echo kept > other"
OVERWRITE = "run: echo second > file; rm other; echo 3 > new"
REVERTED = """
    SELECT count(*) FROM chat.chat_reverts WHERE chat_id = $1::uuid AND kind = 'history'
"""
#: The phases of a revert with files: before and after its intention is stored, before and after the
#: files are restored, and before and after the history is committed.
PHASES = (
    pytest.param("RevertChat.before", marks=pytest.mark.short),
    pytest.param("RevertChat.after", marks=pytest.mark.short),
    pytest.param("restores.restore", marks=pytest.mark.short),
    pytest.param("restores.restored", marks=pytest.mark.short),
    pytest.param("FinishRevert.before", marks=pytest.mark.short),
    pytest.param("FinishRevert.after", marks=pytest.mark.short),
)


async def changed_twice(fault: Fault, client: Parley) -> dict[str, int]:
    """Make chats whose second turn changed what the first one wrote; return those turns."""
    chat_ids = await fault.create_all(client, [WRITE] * fault.size)
    await fault.at_rest()
    second: dict[str, int] = {}
    for chat_id in chat_ids:
        sent = await client.send_message(chat_id, OVERWRITE)
        assert sent.message is not None
        second[chat_id] = sent.message.id
    await fault.at_rest()
    return second


async def revert(client: Parley, chat_id: str, message_id: int) -> None:
    """Ask for a revert; the client repeats it under one request id until it is taken."""
    await client.manage.revert_chat(
        chat_id, message_id, restores_files=True, request_id=f"revert {chat_id}"
    )


@pytest.mark.row("A31")
@pytest.mark.parametrize("point", PHASES)
async def test_a31_a_revert_whose_owner_is_killed_is_completed_once(
    lab: FaultLab, point: str
) -> None:
    async for fault in faults(lab):
        victim = await lab.victim()
        client = await lab.client(victim.address)
        second = await changed_twice(fault, client)
        lab.points.arm(point, Action.HOLD, pid=victim.pid)
        async with asyncio.TaskGroup() as tasks:
            for chat_id, message_id in second.items():
                tasks.create_task(revert(client, chat_id, message_id))
            await fault.kill_held(victim, point, second)
        await fault.at_rest()
        for chat_id, message_id in second.items():
            files = lab.workspace(chat_id) / "files"
            found = {path.name: path.read_text() for path in files.iterdir()}
            ((count,),) = await lab.query(REVERTED, chat_id)
            left = [message.id for message in await fault.messages(chat_id)]
            if (found, count) != ({"file": "first\n", "other": "kept\n"}, 1):
                fault.row.problems.append(f"{chat_id}: {found}, reverted {count} times")
            if not left or max(left) >= message_id:
                fault.row.problems.append(f"{chat_id}: {left} are left before {message_id}")

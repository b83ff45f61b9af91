"""An interrupt that meets a dying owner: row A8."""

import json
import signal
import time

import pytest

from parley.client import connect
from support.faulty_stack import FaultyStack, Where

pytestmark = pytest.mark.slow


def is_at_rest(where: Where) -> bool:
    return where.status in ("waiting", "error")


async def test_what_was_said_before_an_interrupt_survives_the_death_of_who_said_it(
    faulty: FaultyStack, repeat: int
) -> None:
    chat_id = faulty.create("count to 200")
    owner = await faulty.until(chat_id, lambda where: where.address is not None)
    assert owner.address is not None
    kept = "SELECT count(*) FROM chat.chat_partials WHERE chat_id = $1"
    deadline = time.monotonic() + 20
    while not await faulty.connection.fetchval(kept, chat_id):
        assert time.monotonic() < deadline
    process = faulty.process_at(owner.address)
    process.send_signal(signal.SIGSTOP)
    shown = await faulty.connection.fetchval(
        "SELECT string_agg(content::text, '') FROM chat.chat_partials WHERE chat_id = $1", chat_id
    )
    await interrupt(faulty, chat_id, not_at=owner.address)
    assert (await faulty.where(chat_id)).status == "interrupting"
    process.kill()
    rested = await faulty.until(chat_id, is_at_rest)
    assert rested.status == "waiting"
    (_, (role, text)) = faulty.messages(chat_id)
    assert role == "assistant"
    numbers = [int(word) for word in text.split()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert f'"{numbers[-1]} "' in shown
    faulty.audit()


async def interrupt(faulty: FaultyStack, chat_id: str, *, not_at: str) -> None:
    """Interrupt a chat at a process that does not own it."""
    issued = faulty.stack.parley(
        "token", "issue", f"faults-{time.monotonic_ns()}", "--scope", "chat:write"
    )
    assert issued.returncode == 0, issued.stderr
    endpoints = json.loads(faulty.stack.home.endpoints_file.read_text())
    addresses = [address for address in endpoints["grpc"]["chatd"] if address != not_at]
    async with connect(*addresses, token=issued.stdout.strip()) as parley:
        await parley.interrupt(chat_id)

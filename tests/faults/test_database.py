"""The database restarts, loses sessions and forgets listeners: rows A20 to A24."""

import signal
import time

import psutil
import pytest

from support.faulty_stack import FaultyStack, Where, connect_to
from support.local_stack import LocalStack

pytestmark = pytest.mark.slow

COUNTED = "".join(f"{number} " for number in range(1, 31))


def is_at_rest(where: Where) -> bool:
    return where.status in ("waiting", "error")


async def reconnected(stack: LocalStack) -> FaultyStack:
    """Connect as soon as the server takes connections again."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return FaultyStack(stack, await connect_to(stack))
        except Exception:
            if time.monotonic() > deadline:
                raise


@pytest.mark.parametrize(
    "kind", [signal.SIGINT, signal.SIGQUIT, signal.SIGKILL], ids=["fast", "immediate", "killed"]
)
async def test_turns_survive_a_restart_of_the_database(
    faulty: FaultyStack, kind: signal.Signals, repeat: int
) -> None:
    chat_ids = [faulty.create("count to 30") for _ in range(5)]
    for chat_id in chat_ids:
        await faulty.until(chat_id, lambda where: where.address is not None)
    psutil.Process(await postmaster_pid(faulty)).send_signal(kind)
    again = await reconnected(faulty.stack)
    for chat_id in chat_ids:
        await again.until(chat_id, is_at_rest)
        assert again.messages(chat_id) == [("user", "count to 30"), ("assistant", COUNTED)]
    again.audit()
    await again.connection.close()


async def postmaster_pid(faulty: FaultyStack) -> int:
    """Return the parent of the session's backend."""
    backend: int = await faulty.connection.fetchval("SELECT pg_backend_pid()")
    parent = psutil.Process(backend).parent()
    assert parent is not None
    return parent.pid


async def test_a_lost_listener_delays_nothing_for_long(faulty: FaultyStack, repeat: int) -> None:
    await faulty.connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE query ILIKE 'LISTEN%' AND pid <> pg_backend_pid()"
    )
    chat_id = faulty.create("count to 5")
    await faulty.until(chat_id, is_at_rest)
    assert len(faulty.messages(chat_id)) == 2
    faulty.audit()

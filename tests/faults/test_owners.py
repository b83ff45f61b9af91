"""Owners that die, stop and come back: rows A3, A4, A8, A17, A19 of the fault matrix."""

import signal
import time

import pytest

from support.faulty_stack import FaultyStack, Where

pytestmark = pytest.mark.slow

COUNTED = "".join(f"{number} " for number in range(1, 31))


def is_running(where: Where) -> bool:
    return where.status == "running" and where.address is not None


def is_at_rest(where: Where) -> bool:
    return where.status in ("waiting", "error")


async def until_streaming(faulty: FaultyStack, chat_id: str) -> Where:
    """Wait until somebody runs the chat."""
    return await faulty.until(chat_id, is_running)


@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGTERM], ids=lambda kind: kind.name)
async def test_another_process_finishes_the_turn_of_one_that_ends(
    faulty: FaultyStack, kind: signal.Signals, repeat: int
) -> None:
    chat_id = faulty.create("count to 30")
    owner = await until_streaming(faulty, chat_id)
    assert owner.address is not None
    faulty.process_at(owner.address).send_signal(kind)
    ended_at = time.monotonic()
    taken = await faulty.until(
        chat_id, lambda where: where.owner_epoch > owner.owner_epoch and is_running(where)
    )
    print(f"taken over after {time.monotonic() - ended_at:.2f} s ({kind.name})")
    await faulty.until(chat_id, is_at_rest)
    assert taken.owner_epoch == owner.owner_epoch + 1
    assert faulty.messages(chat_id) == [("user", "count to 30"), ("assistant", COUNTED)]
    faulty.audit()


async def test_a_process_that_was_stopped_too_long_finds_its_chat_taken_and_changes_nothing(
    faulty: FaultyStack, repeat: int
) -> None:
    chat_id = faulty.create("count to 30")
    owner = await until_streaming(faulty, chat_id)
    assert owner.address is not None
    stopped = faulty.process_at(owner.address)
    stopped.send_signal(signal.SIGSTOP)
    try:
        await faulty.until(chat_id, lambda where: where.owner_epoch > owner.owner_epoch)
    finally:
        stopped.send_signal(signal.SIGCONT)
    await faulty.until(chat_id, is_at_rest)
    assert faulty.messages(chat_id) == [("user", "count to 30"), ("assistant", COUNTED)]
    faulty.audit()


async def test_a_repeated_create_after_a_crash_makes_one_chat(
    faulty: FaultyStack, repeat: int
) -> None:
    key = f"same-key-{repeat}-{time.monotonic_ns()}"
    chat_id = faulty.create("count to 30", key)
    owner = await until_streaming(faulty, chat_id)
    assert owner.address is not None
    faulty.process_at(owner.address).kill()
    assert faulty.create("count to 30", key) == chat_id
    await faulty.until(chat_id, is_at_rest)
    assert len(faulty.messages(chat_id)) == 2
    faulty.audit()

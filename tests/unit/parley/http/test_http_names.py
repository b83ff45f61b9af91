"""Names of hosts that many ask for at once."""

import asyncio
import socket
from collections.abc import Sequence

import pytest

from parley.http.names import AddressInfo, Names
from support.host.event_loops import one_turn

FOUND: Sequence[AddressInfo] = ((socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.1", 443)),)


class HeldNames:
    """Answers when the test says so."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.may_answer = asyncio.Event()
        self.failure: OSError | None = None

    async def __call__(self, host: str, port: int) -> Sequence[AddressInfo]:
        self.asked.append(host)
        await self.may_answer.wait()
        if self.failure is not None:
            raise self.failure
        return FOUND


async def test_a_name_that_many_ask_for_is_looked_up_once() -> None:
    held = HeldNames()
    names = Names(held)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        asking = [group.create_task(names.addresses("a.test", 443)) for _ in range(100)]
        await one_turn()
        held.may_answer.set()
    assert [task.result() for task in asking] == [FOUND] * 100
    assert await names.addresses("a.test", 443) == FOUND
    assert await names.addresses("b.test", 443) == FOUND
    assert held.asked == ["a.test", "b.test"]


async def test_who_gives_up_leaves_the_question_to_the_next() -> None:
    held = HeldNames()
    names = Names(held)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        first = group.create_task(names.addresses("a.test", 443))
        second = group.create_task(names.addresses("a.test", 443))
        await one_turn()
        first.cancel()
        held.may_answer.set()
    assert (first.cancelled(), second.result()) == (True, FOUND)


async def test_a_name_that_nobody_knows_is_told_to_all_and_asked_again_later() -> None:
    held = HeldNames()
    held.failure = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    names = Names(held)

    async def refused() -> bool:
        with pytest.raises(socket.gaierror):
            await names.addresses("a.test", 443)
        return True

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        asking = [group.create_task(refused()) for _ in range(10)]
        await one_turn()
        held.may_answer.set()
    assert [task.result() for task in asking] == [True] * 10
    held.failure = None
    assert await names.addresses("a.test", 443) == FOUND
    assert held.asked == ["a.test", "a.test"]


@pytest.mark.parametrize(
    ("host", "family"), [("192.0.2.1", socket.AF_INET), ("2001:db8::1", socket.AF_INET6)]
)
async def test_a_number_is_its_own_address(host: str, family: socket.AddressFamily) -> None:
    held = HeldNames()
    found = (family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, 443))
    assert await Names(held).addresses(host, 443) == (found,)
    assert held.asked == []

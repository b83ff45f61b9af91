"""A replica that shares its configuration with others finds its own address among theirs."""

import asyncio
from dataclasses import replace

import pytest

from parley.clock import FakeClock
from parley.process import ServiceSettings
from parley.process.service_settings import PATIENCE_S, RETRY_S, with_own_address
from parley.rpc import Address
from parley.settings import ConfigurationError, read

ALL = "tls:one:7002,tls:two:7002,tls:three:7002"


def settings(advertise: str, listen: str = "tls:0.0.0.0:7002") -> ServiceSettings:
    return read(
        ServiceSettings,
        {
            "X_LISTEN": listen,
            "X_ADVERTISE": advertise,
            "X_TRUST_FILE": "/t",
            "X_SIGNING_KEY_FILE": "/k",
        },
        prefix="X",
    )


class Names:
    """Names as a network knows them; some become known only after a number of questions."""

    def __init__(self, known: dict[str, str], unknown_for: int = 0) -> None:
        self._known = known
        self._unknown_for = unknown_for

    async def resolve(self, host: str) -> frozenset[str]:
        self._unknown_for -= 1
        found = self._known.get(host) if self._unknown_for < 0 else None
        return frozenset() if found is None else frozenset({found})


async def test_a_replica_takes_the_address_whose_host_is_its_own() -> None:
    names = Names({"one": "192.0.2.1", "two": "127.0.0.1", "three": "192.0.2.3"})
    found = await with_own_address(settings(ALL), FakeClock(), names.resolve)
    assert found == replace(settings(ALL), advertise=(Address.parse("tls:two:7002"),))
    assert str(found.address) == "tls:two:7002"


async def test_replicas_on_one_machine_are_told_apart_by_their_ports() -> None:
    given = settings("tls:127.0.0.1:7001,tls:127.0.0.1:7002")
    found = await with_own_address(given, FakeClock())
    assert str(found.address) == "tls:127.0.0.1:7002"


async def test_a_range_is_a_list() -> None:
    assert list(map(str, settings("tls:chatd-1..2:7002").advertise)) == [
        "tls:chatd-1:7002",
        "tls:chatd-2:7002",
    ]


@pytest.mark.parametrize(
    ("advertise", "address"), [("tls:a:1", "tls:a:1"), ("", "tls:0.0.0.0:7002")]
)
async def test_one_address_or_none_is_taken_as_it_is(advertise: str, address: str) -> None:
    found = await with_own_address(settings(advertise), FakeClock())
    assert str(found.address) == address


async def test_names_that_are_not_known_yet_are_waited_for() -> None:
    clock, names = FakeClock(), Names({"two": "127.0.0.1"}, unknown_for=3)
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        finding = tasks.create_task(with_own_address(settings(ALL), clock, names.resolve))
        assert await clock.until_sleeping() == RETRY_S
        clock.advance(RETRY_S)
    assert str(finding.result().address) == "tls:two:7002"


@pytest.mark.parametrize("known", [{}, {"one": "127.0.0.1", "two": "127.0.0.1"}])
async def test_a_replica_that_is_none_or_several_of_them_says_so(known: dict[str, str]) -> None:
    clock = FakeClock()

    async def refused() -> str:
        with pytest.raises(ConfigurationError) as caught:
            await with_own_address(settings(ALL), clock, Names(known).resolve)
        return str(caught.value)

    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        refusing = tasks.create_task(refused())
        if not known:
            await clock.until_sleeping()
            clock.advance(PATIENCE_S)
    assert "name all replicas" in refusing.result()

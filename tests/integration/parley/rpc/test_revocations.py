"""Following revocations: a scripted gateway behind the real server, and a follower of it."""

import asyncio
import random  # noqa: TID251 (a seeded one is no chance)
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from parley.api.identity.v1 import token_pb2
from parley.api.identity.v1 import token_service_pb2 as api
from parley.api.identity.v1.token_service_pb2_grpc import (
    ServiceTokenServiceServicer,
    add_ServiceTokenServiceServicer_to_server,
)
from parley.clock import Clock, FakeClock, SystemClock
from parley.identity import (
    Guard,
    InMemoryRevocations,
    RevocationsUnknown,
    ServiceName,
    Signer,
    SigningKey,
    Trust,
    TrustFile,
)
from parley.rpc import (
    Address,
    Channels,
    FollowedRevocations,
    Problem,
    Refusal,
    Registration,
    RevocationTiming,
    connect,
    serve,
)
from parley.telemetry import InMemoryTelemetry

AT_ONCE = RevocationTiming(retry_first_s=0.001, retry_last_s=0.001)
LOST = Problem(grpc.StatusCode.UNAVAILABLE, "DRAINING", "call another replica")
LONG_AGO, FAR_OFF = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)

Step = api.WatchRevocationsResponse | Problem


def entries(token_ids: Sequence[str], end: datetime) -> list[token_pb2.RevokedToken]:
    expires_at = Timestamp()
    expires_at.FromDatetime(end)
    return [token_pb2.RevokedToken(token_id=each, expires_at=expires_at) for each in token_ids]


def snapshot(version: int, *token_ids: str, end: datetime = FAR_OFF) -> Step:
    revoked = entries(token_ids, end)
    return api.WatchRevocationsResponse(
        snapshot=api.RevocationSnapshot(version=version, revoked_tokens=revoked)
    )


def change(previous: int, version: int, *token_ids: str) -> Step:
    return api.WatchRevocationsResponse(
        change=api.RevocationChange(
            previous_version=previous,
            version=version,
            revoked_tokens=entries(token_ids, FAR_OFF),
        )
    )


def heartbeat(version: int) -> Step:
    return api.WatchRevocationsResponse(heartbeat=api.RevocationHeartbeat(version=version))


class ScriptedGateway(ServiceTokenServiceServicer):
    """Plays one script per stream and then stays silent; without a script it only listens."""

    def __init__(self, *scripts: Sequence[Step]) -> None:
        self._scripts = deque(scripts)
        self._streams = 0
        self._opened = asyncio.Condition()

    async def WatchRevocations(  # noqa: N802 (the name is the proto's)
        self, request: Any, context: Any
    ) -> AsyncIterator[api.WatchRevocationsResponse]:
        async with self._opened:
            self._streams += 1
            self._opened.notify_all()
        for step in self._scripts.popleft() if self._scripts else ():
            if isinstance(step, Problem):
                raise Refusal(step)
            yield step
        await asyncio.Event().wait()

    async def until_streams(self, count: int) -> None:
        """Wait for the stream number `count`; what came before it was taken by then."""
        async with self._opened:
            await self._opened.wait_for(lambda: self._streams >= count)


class House:
    """A key of chatd, trusted by gateways, and the channels made with it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        key = SigningKey.generate()
        TrustFile(directory / "trust.json").add_key(ServiceName.CHATD, key)
        self._signer = Signer(ServiceName.CHATD, key, SystemClock())
        self._telemetry = InMemoryTelemetry("chatd").telemetry

    def address(self, name: str = "gateway") -> Address:
        return Address.parse(f"unix:{self._directory}/{name}.sock")

    @asynccontextmanager
    async def serving(self, gateway: ScriptedGateway, name: str = "gateway") -> AsyncIterator[None]:
        guard = Guard(
            ServiceName.GATEWAY,
            Trust(self._directory / "trust.json", SystemClock()),
            InMemoryRevocations(),
            SystemClock(),
            peers_by_certificate=False,
        )
        registration = Registration(
            api.DESCRIPTOR.services_by_name["ServiceTokenService"],
            add_ServiceTokenServiceServicer_to_server,
            gateway,
        )
        async with serve(
            self.address(name),
            [registration],
            guard=guard,
            errors={},
            domain="identity.parley",
            telemetry=self._telemetry,
            drain_s=0.05,
        ):
            yield

    @asynccontextmanager
    async def following(
        self, *addresses: Address, clock: Clock | None = None, timing: RevocationTiming = AT_ONCE
    ) -> AsyncIterator[FollowedRevocations]:
        channels = Channels(
            addresses,
            lambda address: connect(
                address,
                audience=ServiceName.GATEWAY,
                signer=self._signer,
                telemetry=self._telemetry,
            ),
        )
        followed = FollowedRevocations(
            channels, clock=clock or SystemClock(), random=random.Random(1), timing=timing
        )
        try:
            async with asyncio.TaskGroup() as tasks:
                running = tasks.create_task(followed.run())
                yield followed
                running.cancel()
        finally:
            await channels.close()


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def revoked(followed: FollowedRevocations, *token_ids: str) -> list[str]:
    return [token_id for token_id in token_ids if followed.is_revoked(token_id)]


async def test_nothing_is_known_before_the_first_snapshot(house: House) -> None:
    gateway = ScriptedGateway()
    async with asyncio.timeout(5), house.serving(gateway), house.following(house.address()) as it:
        await gateway.until_streams(1)
        with pytest.raises(RevocationsUnknown):
            it.is_revoked("a")


async def test_a_snapshot_makes_the_revoked_and_the_others_known(house: House) -> None:
    gateway = ScriptedGateway([snapshot(7, "a"), LOST])
    async with asyncio.timeout(5), house.serving(gateway), house.following(house.address()) as it:
        await gateway.until_streams(2)
        assert revoked(it, "a", "b") == ["a"]


async def test_changes_and_heartbeats_continue_the_snapshot(house: House) -> None:
    told = [snapshot(7, "a"), change(7, 9, "b"), heartbeat(9), change(9, 10, "c"), LOST]
    gateway = ScriptedGateway(told)
    async with asyncio.timeout(5), house.serving(gateway), house.following(house.address()) as it:
        await gateway.until_streams(2)
        assert revoked(it, "a", "b", "c", "d") == ["a", "b", "c"]


@pytest.mark.parametrize("gap", [change(8, 9, "c"), heartbeat(8)])
async def test_a_gap_opens_a_new_stream_and_takes_its_snapshot(house: House, gap: Step) -> None:
    gateway = ScriptedGateway([snapshot(7, "a"), gap], [snapshot(9, "a", "b", "c"), LOST])
    async with asyncio.timeout(5), house.serving(gateway), house.following(house.address()) as it:
        await gateway.until_streams(3)
        assert revoked(it, "a", "b", "c") == ["a", "b", "c"]


async def test_what_comes_behind_a_gap_is_revoked_at_once(house: House) -> None:
    gateway = ScriptedGateway([snapshot(7, "a"), change(8, 9, "c")])
    async with asyncio.timeout(5), house.serving(gateway), house.following(house.address()) as it:
        await gateway.until_streams(2)
        assert revoked(it, "a", "b", "c") == ["a", "c"]


async def test_a_stream_without_its_snapshot_makes_nothing_known(house: House) -> None:
    gateway = ScriptedGateway([change(7, 8, "a")])
    async with asyncio.timeout(5), house.serving(gateway), house.following(house.address()) as it:
        await gateway.until_streams(2)
        with pytest.raises(RevocationsUnknown):
            it.is_revoked("a")


async def test_a_lost_gateway_leaves_what_it_told_in_force(house: House) -> None:
    clock = FakeClock()
    async with asyncio.timeout(10), AsyncExitStack() as stack:
        gateway = ScriptedGateway([snapshot(7, "a"), LOST])
        await stack.enter_async_context(house.serving(gateway))
        async with house.following(house.address(), clock=clock) as it:
            clock.advance(await clock.until_sleeping())
            await gateway.until_streams(2)
            await stack.aclose()
            await clock.until_sleeping()
            assert revoked(it, "a", "b") == ["a"]


async def test_a_gateway_that_lags_behind_takes_nothing_back(house: House) -> None:
    gateway = ScriptedGateway([snapshot(9, "a", "b"), LOST], [snapshot(7, "a", "c"), LOST])
    async with asyncio.timeout(5), house.serving(gateway), house.following(house.address()) as it:
        await gateway.until_streams(3)
        assert revoked(it, "a", "b", "c") == ["a", "b", "c"]


async def test_entries_of_expired_tokens_are_forgotten(house: House) -> None:
    gateway = ScriptedGateway([snapshot(7, "a", end=LONG_AGO), LOST])
    async with asyncio.timeout(5), house.serving(gateway), house.following(house.address()) as it:
        await gateway.until_streams(2)
        assert revoked(it, "a") == []


async def test_a_silent_stream_is_given_up(house: House) -> None:
    gateway = ScriptedGateway([snapshot(7)])
    timing = RevocationTiming(silence_s=0.02, retry_first_s=0.001, retry_last_s=0.001)
    async with (
        asyncio.timeout(5),
        house.serving(gateway),
        house.following(house.address(), timing=timing),
    ):
        await gateway.until_streams(2)


async def test_the_next_gateway_is_followed_when_one_is_lost(house: House) -> None:
    both = (house.address("a"), house.address("b"))
    gateway = ScriptedGateway([snapshot(7, "a"), LOST], [snapshot(7, "a")])
    async with (
        asyncio.timeout(5),
        house.serving(gateway, "b"),
        house.following(*both) as it,
    ):
        await gateway.until_streams(2)
        assert revoked(it, "a") == ["a"]


async def delays_of(clock: FakeClock, count: int) -> list[float]:
    """Return the next delays of a follower, each slept to its end."""
    delays_s = []
    for _ in range(count):
        delays_s.append(await clock.until_sleeping())
        clock.advance(delays_s[-1])
    return delays_s


def lie_within(delays_s: list[float], bounds_s: Sequence[tuple[float, float]]) -> bool:
    pairs = zip(delays_s, bounds_s, strict=True)
    return all(low <= delay_s <= high for delay_s, (low, high) in pairs)


async def test_attempts_are_spread_by_the_clock_and_slow_down(house: House) -> None:
    clock, gateway = FakeClock(), ScriptedGateway(*[[snapshot(7), LOST]] * 4)
    timing = RevocationTiming(retry_first_s=1.0, retry_last_s=4.0)
    async with (
        asyncio.timeout(15),
        house.serving(gateway),
        house.following(house.address(), clock=clock, timing=timing),
    ):
        delays_s = await delays_of(clock, 4)
    assert lie_within(delays_s, [(0.5, 1), (1, 2), (2, 4), (2, 4)])


async def test_attempts_stay_quick_until_the_first_snapshot(house: House) -> None:
    clock = FakeClock()
    async with (
        asyncio.timeout(15),
        house.following(clock=clock, timing=RevocationTiming()) as it,
    ):
        delays_s = await delays_of(clock, 6)
        with pytest.raises(RevocationsUnknown):
            it.is_revoked("a")
    assert lie_within(delays_s, [(0.05, 0.1), (0.1, 0.2), *[(0.15, 0.3)] * 4])

import asyncio
from collections import Counter
from typing import Any, cast

import grpc
import pytest

from parley.rpc import Address, Channels, NoAddress, ranked

REPLICAS = tuple(Address.parse(f"tcp:10.0.0.{number}:7001") for number in range(1, 6))
KEYS = tuple(f"chat-{number}" for number in range(2000))


class FakeChannel:
    """A channel that only knows whether it was closed."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.is_closed = False

    async def close(self, grace: float | None = None) -> None:
        self.is_closed = True


def open_fake(address: Address) -> grpc.aio.Channel:
    return cast(grpc.aio.Channel, FakeChannel(address))


def address_of(channel: grpc.aio.Channel) -> Address:
    address: Address = cast(Any, channel).address
    return address


def choices(addresses: tuple[Address, ...]) -> dict[str, Address]:
    channels = Channels(addresses, open_fake)
    return {key: address_of(channels.for_key(key)) for key in KEYS}


def test_everyone_chooses_the_same_replica_whatever_the_order_they_learnt_them_in() -> None:
    assert choices(REPLICAS) == choices(tuple(reversed(REPLICAS)))


def test_the_choice_does_not_depend_on_the_release_that_makes_it() -> None:
    assert [str(ranked(key, REPLICAS)[0]) for key in ("a", "b", "c")] == [
        "tcp:10.0.0.4:7001",
        "tcp:10.0.0.3:7001",
        "tcp:10.0.0.3:7001",
    ]


def test_keys_are_spread_evenly() -> None:
    counts = Counter(choices(REPLICAS).values())
    assert set(counts) == set(REPLICAS)
    assert all(300 < count < 500 for count in counts.values())


def test_a_replica_that_leaves_moves_only_its_own_keys() -> None:
    before, after = choices(REPLICAS), choices(REPLICAS[1:])
    moved = {key for key in KEYS if before[key] != after[key]}
    assert moved == {key for key in KEYS if before[key] == REPLICAS[0]}


def test_a_replica_that_joins_takes_only_its_share() -> None:
    joined = Address.parse("tcp:10.0.0.6:7001")
    before, after = choices(REPLICAS), choices((*REPLICAS, joined))
    moved = {key for key in KEYS if before[key] != after[key]}
    assert moved == {key for key in KEYS if after[key] == joined}
    assert len(moved) < len(KEYS) / 4


def test_the_second_in_rank_is_the_choice_once_the_first_is_gone() -> None:
    first, second, *_ = ranked("chat-1", REPLICAS)
    rest = tuple(address for address in REPLICAS if address != first)
    assert ranked("chat-1", rest)[0] == second


def test_a_channel_is_opened_once_and_kept() -> None:
    channels = Channels(REPLICAS, open_fake)
    assert channels.for_key("a") is channels.for_key("a")
    assert [address_of(channel) for channel in channels.all()] == list(REPLICAS)


async def test_an_update_closes_the_channels_of_replicas_that_are_gone() -> None:
    channels = Channels(REPLICAS[:2], open_fake)
    gone, kept = (cast(Any, channel) for channel in channels.all())
    async with asyncio.timeout(5):
        await channels.update(REPLICAS[1:3])
    assert (gone.is_closed, kept.is_closed) == (True, False)
    assert channels.addresses == REPLICAS[1:3]
    assert channels.at(REPLICAS[1]) is kept


async def test_nobody_is_chosen_when_no_replica_is_known() -> None:
    channels = Channels((), open_fake)
    with pytest.raises(NoAddress):
        channels.for_key("a")
    with pytest.raises(NoAddress):
        channels.at(REPLICAS[0])


async def test_closing_closes_every_channel() -> None:
    channels = Channels(REPLICAS, open_fake)
    opened = [cast(Any, channel) for channel in channels.all()]
    async with asyncio.timeout(5):
        await channels.close()
    assert all(channel.is_closed for channel in opened)
    assert channels.addresses == ()

"""Groups in chatd: asked of a real gateway, shared with, and removed when they are deleted."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from chatd.bus_handlers import follow_groups, follow_users
from chatd.offboarding.engine.group_cleanup import CHECK_S, RETRY_EVERY_S, GroupCleanup
from chatd.offboarding.engine.suspended_users import UserSuspension
from chatd.offboarding.store.group_cleanup import PostgresGroupCleanup
from chatd.primitives.domain.errors import CheckUnavailable
from chatd.primitives.domain.ids import OwnerId
from chatd.spend.domain.limits import LimitPeriod, SpendLimit, Subject, SubjectKind
from chatd.spend.store.limits import PostgresLimits
from chatd.users.clients.existence import GatewayGrantees
from chatd.users.clients.groups import CachedGroups, GatewayDeletions, GatewayGroups
from chatd.users.domain.grantees import Grantee, GranteeKind, Grantees
from chatd.users.domain.groups import GroupsUnavailable
from parley.api.chat.v1 import chat_service_pb2 as api
from parley.clock import FakeClock
from parley.identity import ServiceName
from parley.postgres import Pool
from parley.rpc import Address, Channels, connect
from support.chatd.chats.chat_people import EVE_ID, EVES_GROUP
from support.chatd.chats.served_chats import ServedChats
from support.chatd.users.fixed_users import KnownDeletions, KnownGrantees
from support.database.postgres import TestPostgres
from support.gateway.stack import GatewayStack, gateway_stack, migrate_identity

OTHER_GROUP = "00000000-0000-0000-0000-0000000000ef"


@pytest.fixture
async def gateway(postgres: TestPostgres, tmp_path: Path) -> AsyncIterator[GatewayStack]:
    async with (
        postgres.database(template="identity", prepare=migrate_identity) as url,
        gateway_stack(tmp_path, url) as running,
    ):
        yield running


@asynccontextmanager
async def channels_to(gateway: GatewayStack) -> AsyncIterator[Channels]:
    known = Channels(
        (gateway.gateway.grpc.address,),
        lambda address: connect(
            address,
            audience=ServiceName.GATEWAY,
            signer=gateway.chatd_signer,
            telemetry=gateway.telemetry.telemetry,
        ),
    )
    try:
        yield known
    finally:
        await known.close()


@pytest.fixture
async def channels(gateway: GatewayStack) -> AsyncIterator[Channels]:
    async with channels_to(gateway) as known:
        yield known


async def asked(gateway: GatewayStack, method: str, path: str, body: Any = None) -> Any:
    reply = await gateway.owner.request(method, f"/api/v1{path}", body)
    assert reply.status < 300, reply.body
    return reply.json() if reply.body else None


async def until(question: Callable[[], Awaitable[object]], answer: object) -> None:
    async with asyncio.timeout(30):
        while await question() != answer:
            pass


async def test_the_gateway_tells_who_belongs_where_and_the_bus_when_that_changes(
    gateway: GatewayStack, channels: Channels, pool: Pool
) -> None:
    class NoSuspension(UserSuspension):
        async def on_notice(self, user_id: OwnerId) -> None:
            """Suspend no user."""

    class Lists:
        """Remembers whose groups are said to have changed."""

        def __init__(self) -> None:
            self.changed: list[str] = []

        def groups_changed(self, user_id: OwnerId) -> None:
            self.changed.append(user_id)

        def group_changed(self, group_id: str) -> None:
            self.changed.append(group_id)

        def on_groups_resync(self) -> None:
            """Nothing was lost."""

    unused: Any = None
    lists = Lists()
    groups = CachedGroups(GatewayGroups(channels), FakeClock())
    group_cleanup = GroupCleanup(
        PostgresGroupCleanup(pool),
        GatewayDeletions(channels),
        limits_changed=lambda: None,
        clock=FakeClock(),
    )
    user = await asked(gateway, "POST", "/users", {"login": "ada", "role": "member"})
    group = await asked(gateway, "POST", "/groups", {"name": "one"})
    membership = f"/groups/{group['id']}/members/{user['id']}"
    user_id = OwnerId(user["id"])

    async def told() -> object:
        return await groups.of(user_id)

    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        following = [
            tasks.create_task(follow_users(gateway.bus, NoSuspension(unused), groups, lists)),
            tasks.create_task(follow_groups(gateway.bus, groups, group_cleanup, lists)),
        ]
        assert await told() == ()
        await asked(gateway, "PUT", membership)
        await until(told, (group["id"],))
        await asked(gateway, "DELETE", membership)
        await until(told, ())
        await asked(gateway, "PUT", membership)
        await until(told, (group["id"],))
        await asked(gateway, "DELETE", f"/groups/{group['id']}")
        await until(told, ())
        for task in following:
            task.cancel()
    assert await groups.of(OwnerId(OTHER_GROUP)) == ()
    assert {user["id"], group["id"]} <= set(lists.changed)


async def test_without_a_gateway_nobody_knows_anything(
    postgres: TestPostgres, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        database = postgres.database(template="identity", prepare=migrate_identity)
        url = await stack.enter_async_context(database)
        async with gateway_stack(tmp_path, url) as gateway:
            channels = await stack.enter_async_context(channels_to(gateway))
            deletions = GatewayDeletions(channels)
            group = await asked(gateway, "POST", "/groups", {"name": "one"})
            await asked(gateway, "DELETE", f"/groups/{group['id']}")
            assert await deletions.among((group["id"], OTHER_GROUP)) == {group["id"]}
        with pytest.raises(GroupsUnavailable):
            await deletions.among((group["id"],))
        with pytest.raises(GroupsUnavailable):
            await GatewayGroups(channels).of(EVE_ID)


def sharing(chat_id: str, *shares: api.Share) -> api.SetSharesRequest:
    return api.SetSharesRequest(request_id="s", chat_id=chat_id, shares=shares)


async def shared_with_eve(served: ServedChats) -> list[str]:
    answer = await served.eve.ask(api.ListChatsRequest(shared_with_me=True))
    return [chat.id for chat in answer.chats]


async def test_what_is_shared_with_a_group_is_there_for_as_long_as_one_belongs_to_it(
    served: ServedChats,
) -> None:
    chat = await served.ann.create()
    await served.ann.ask(sharing(chat.id, api.Share(group_id=EVES_GROUP)))
    assert await shared_with_eve(served) == [chat.id]
    assert await served.eve.texts(chat.id) == ["hello"]
    assert (await served.eve.get(chat.id)).id == chat.id

    served.groups.groups.clear()
    assert await shared_with_eve(served) == []
    refused = await served.eve.refusal(api.GetChatRequest(chat_id=chat.id))
    assert refused.status is grpc.StatusCode.NOT_FOUND


async def test_while_nobody_tells_groups_only_what_is_shared_with_them_is_out_of_sight(
    served: ServedChats,
) -> None:
    own = await served.eve.create()
    for_her, for_her_group = await served.ann.create(), await served.ann.create()
    await served.ann.ask(sharing(for_her.id, api.Share(user_id=EVE_ID)))
    await served.ann.ask(sharing(for_her_group.id, api.Share(group_id=EVES_GROUP)))
    served.groups.is_available = False

    assert await shared_with_eve(served) == [for_her.id]
    assert (await served.eve.get(own.id)).id == own.id
    refused = await served.eve.refusal(api.GetChatRequest(chat_id=for_her_group.id))
    assert (refused.status, refused.reason) == (grpc.StatusCode.NOT_FOUND, "CHAT_NOT_FOUND")


def limit_of(group_id: str) -> SpendLimit:
    return SpendLimit(Subject(SubjectKind.GROUP, group_id), 5, LimitPeriod.DAY)


async def test_a_deleted_group_leaves_no_share_and_no_limit(served: ServedChats) -> None:
    served.grantees.grantees.add(Grantee(GranteeKind.GROUP, OTHER_GROUP))
    chat, limits = await served.ann.create(), PostgresLimits(served.pool)
    both = (api.Share(group_id=EVES_GROUP), api.Share(group_id=OTHER_GROUP))
    await served.ann.ask(sharing(chat.id, *both, api.Share(user_id=EVE_ID)))
    for group_id in (EVES_GROUP, OTHER_GROUP):
        await limits.put(limit_of(group_id))
    changes: list[None] = []
    deletions, clock = KnownDeletions(EVES_GROUP), FakeClock()
    group_cleanup = GroupCleanup(
        PostgresGroupCleanup(served.pool),
        deletions,
        limits_changed=lambda: changes.append(None),
        clock=clock,
    )

    async def left() -> tuple[list[str], tuple[SpendLimit, ...], int]:
        shares = (await served.ann.ask(api.GetSharesRequest(chat_id=chat.id))).shares
        named = [share.group_id or share.user_id for share in shares]
        return sorted(named), await limits.limits(), len(changes)

    await group_cleanup.on_notice(OTHER_GROUP)
    everything = (limit_of(EVES_GROUP), limit_of(OTHER_GROUP))
    assert await left() == (sorted((EVE_ID, EVES_GROUP, OTHER_GROUP)), everything, 0)
    await group_cleanup.on_notice(EVES_GROUP)
    assert await left() == (sorted((EVE_ID, OTHER_GROUP)), (limit_of(OTHER_GROUP),), 1)
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(group_cleanup.run())
        await clock.until_sleeping()
        assert await left() == (sorted((EVE_ID, OTHER_GROUP)), (limit_of(OTHER_GROUP),), 1)
        deletions.group_ids.add(OTHER_GROUP)
        for _ in range(int(CHECK_S / RETRY_EVERY_S)):
            clock.advance(RETRY_EVERY_S)
            await clock.until_sleeping()
        assert await left() == ([EVE_ID], (), 2)
        running.cancel()


async def test_what_could_not_be_settled_is_settled_a_minute_later(served: ServedChats) -> None:
    limits, clock = PostgresLimits(served.pool), FakeClock()
    await limits.put(limit_of(EVES_GROUP))
    deletions = KnownDeletions()
    group_cleanup = GroupCleanup(
        PostgresGroupCleanup(served.pool), deletions, limits_changed=lambda: None, clock=clock
    )
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(group_cleanup.run())
        await clock.until_sleeping()
        deletions.group_ids.add(EVES_GROUP)
        deletions.is_available = False
        await group_cleanup.on_notice(EVES_GROUP)
        clock.advance(RETRY_EVERY_S)
        await clock.until_sleeping()
        assert await limits.limits() == (limit_of(EVES_GROUP),)
        deletions.is_available = True
        clock.advance(RETRY_EVERY_S)
        await clock.until_sleeping()
        assert await limits.limits() == ()
        running.cancel()


@pytest.mark.parametrize("is_real", [True, False], ids=["gateway", "known"])
async def test_users_and_groups_that_there_are_not_are_told(
    gateway: GatewayStack, channels: Channels, is_real: bool
) -> None:
    group_id = (await asked(gateway, "POST", "/groups", {"name": "reviewers"}))["id"]
    gone_id = (await asked(gateway, "POST", "/groups", {"name": "gone"}))["id"]
    await asked(gateway, "DELETE", f"/groups/{gone_id}")
    user_id = (await asked(gateway, "GET", "/me"))["id"]
    there = [Grantee(GranteeKind.USER, user_id), Grantee(GranteeKind.GROUP, group_id)]
    absent = [
        Grantee(GranteeKind.GROUP, gone_id),
        Grantee(GranteeKind.GROUP, user_id),
        Grantee(GranteeKind.USER, group_id),
    ]
    grantees: Grantees = GatewayGrantees(channels) if is_real else KnownGrantees(there)
    assert await grantees.unknown([*there, *absent]) == frozenset(absent)
    assert await grantees.unknown(there) == frozenset()


async def test_without_a_gateway_no_user_and_no_group_is_known(tmp_path: Path) -> None:
    def connected(address: Address) -> grpc.aio.Channel:
        return grpc.aio.insecure_channel(str(address))

    channels = Channels((Address.parse(f"unix:{tmp_path}/nothing.sock"),), connected)
    try:
        with pytest.raises(CheckUnavailable):
            await GatewayGrantees(channels).unknown([Grantee(GranteeKind.USER, EVE_ID)])
    finally:
        await channels.close()

"""Nothing of deleted users stays, whether or not the notice of their deletion arrives."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mcpgateway.admin.deleted_users import RETRY_S, SWEEP_S, DeletedUsers
from mcpgateway.admin.notices import USERS_TOPIC
from mcpgateway.oauth.store.grants import GrantStore
from mcpgateway.servers.errors import GroupsUnavailable
from mcpgateway.servers.groups import GatewayGroups
from mcpgateway.servers.user_values import StoredUsers
from parley.api.identity.v1 import user_service_pb2 as users_api
from parley.api.identity.v1.user_service_pb2_grpc import UserServiceStub
from parley.bus import Notice, PostgresBus
from parley.clock import FakeClock
from parley.identity import Role, ServiceName, SigningKey, TrustFile, User, UserId
from parley.postgres import Database
from parley.rpc import Address, Channels
from parley.secrets import Keyring, SecretBox
from support.database.postgres import TestPostgres
from support.gateway.identity_calls import ASKED, channel_to, owner_of
from support.gateway.stack import GatewayStack, gateway_stack, migrate_identity
from support.host.supervised import supervision
from support.mcpgateway.authorization_server import FakeAuthorizationServer
from support.mcpgateway.gateway import KnownGateway, mcp_gateway
from support.mcpgateway.logins import LoginLab, create_server

PLACE = Address.parse("unix:/gateway")


@pytest.fixture
def own_key() -> SigningKey:
    """The key of a mcpgateway that the gateway trusts."""
    return SigningKey.generate()


@pytest.fixture
async def stack(
    tmp_path: Path, postgres: TestPostgres, own_key: SigningKey
) -> AsyncIterator[GatewayStack]:
    """A gateway whose notices do not reach mcpgateway, because its database is another one."""
    (tmp_path / "gateway").mkdir(mode=0o700)
    TrustFile(tmp_path / "gateway" / "trust.json").add_key(ServiceName.MCPGATEWAY, own_key)
    async with (
        postgres.database(template="identity", prepare=migrate_identity) as url,
        gateway_stack(tmp_path / "gateway", url) as running,
    ):
        yield running


async def create_user(stack: GatewayStack, login: str) -> User:
    async with channel_to(stack, as_user=await owner_of(stack)) as channel:
        asked = users_api.CreateUserRequest(**(ASKED | {"login": login, "request_id": login}))
        made = (await UserServiceStub(channel).CreateUser(asked)).user
    return User(UserId(made.user_id), Role.MEMBER)


async def delete_user(stack: GatewayStack, user: User) -> None:
    async with channel_to(stack, as_user=await owner_of(stack)) as channel:
        users = UserServiceStub(channel)
        await users.DeactivateUser(users_api.DeactivateUserRequest(user_id=user.id))
        await users.DeleteUser(users_api.DeleteUserRequest(user_id=user.id))


async def test_a_login_of_a_deleted_user_goes_although_the_notice_was_lost(
    lab: LoginLab, stack: GatewayStack, database: Database
) -> None:
    ada, bob = await create_user(stack, "ada"), await create_user(stack, "bob")
    for user in (ada, bob):
        await lab.log_in(user, user.id)
    await lab.begin(ada, request_id="begun")
    await delete_user(stack, ada)
    clock, grants = FakeClock(), GrantStore(database, SecretBox(Keyring.generate()), "test")
    async with channel_to(stack, as_user=None) as channel:
        groups = GatewayGroups(Channels((PLACE,), lambda _: channel), clock)
        deleted = DeletedUsers(StoredUsers(database), groups, grants.delete_of_user, clock)
        await deleted.sweep()
        left = {
            row["user_id"]
            for row in await database.pool.fetch(
                "SELECT user_id FROM mcp.grants UNION SELECT user_id FROM mcp.oauth_flows"
            )
        }

    assert left == {bob.id}


async def test_a_login_goes_when_the_bus_says_that_its_user_is_deleted(
    tmp_path: Path,
    mcp_database: str,
    issuer: FakeAuthorizationServer,
    stack: GatewayStack,
    database: Database,
    own_key: SigningKey,
) -> None:
    asked = KnownGateway(stack.gateway.grpc.address, own_key)
    ada, bob = await create_user(stack, "ada"), await create_user(stack, "bob")

    async def users() -> set[str]:
        return {
            row["user_id"] for row in await database.pool.fetch("SELECT user_id FROM mcp.grants")
        }

    async with (
        asyncio.timeout(60),
        mcp_gateway(
            tmp_path / "two", mcp_database, allowed=issuer.place, clock=stack.clock, asked=asked
        ) as gateway,
        PostgresBus.open(
            mcp_database, application_name="gateway", supervision=supervision()
        ) as bus,
    ):
        lab = LoginLab(gateway, issuer, await create_server(gateway, issuer.mcp_url))
        for user in (ada, bob):
            await lab.log_in(user, user.id)
        await delete_user(stack, ada)
        kept = await users()
        # A notice says that something changed, also of users who are not deleted.
        bus.publish(Notice(USERS_TOPIC, bob.id, 1), Notice(USERS_TOPIC, ada.id, 1))
        while await users() == kept:
            pass

    assert (kept, await users()) == ({ada.id, bob.id}, {bob.id})


class Reachable:
    """Gateways that can be reached or not."""

    def __init__(self, *gateways: GatewayGroups) -> None:
        self.asked = list(gateways)
        self.count = asyncio.Semaphore(0)

    async def is_deleted(self, user_id: str) -> bool:
        self.count.release()
        groups = self.asked.pop(0) if len(self.asked) > 1 else self.asked[0]
        return await groups.is_deleted(user_id)


async def test_a_notice_that_no_gateway_explains_is_looked_at_again(
    stack: GatewayStack, database: Database
) -> None:
    ada = await create_user(stack, "ada")
    await delete_user(stack, ada)
    clock, forgotten = FakeClock(), asyncio.Queue[str]()
    unreachable = GatewayGroups(Channels((), lambda _: pytest.fail("there is none")), clock)
    with pytest.raises(GroupsUnavailable):
        await unreachable.is_deleted(ada.id)
    async with asyncio.timeout(30), channel_to(stack, as_user=None) as channel:
        groups = GatewayGroups(Channels((PLACE,), lambda _: channel), clock)
        reachable = Reachable(unreachable, unreachable, groups)
        deleted = DeletedUsers(StoredUsers(database), reachable, forgotten.put, clock)
        await deleted.check(ada.id)
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(deleted.run())
            await reachable.count.acquire()
            await reachable.count.acquire()
            assert forgotten.empty()
            await clock.until_sleeping_for(RETRY_S)
            clock.advance(RETRY_S)
            assert await forgotten.get() == ada.id
            # From then on hourly, or when notices may be lost.
            await clock.until_sleeping_for(SWEEP_S)
            running.cancel()

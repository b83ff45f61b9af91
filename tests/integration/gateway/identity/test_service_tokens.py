import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from gateway.identity.engine.revocation_feed import POLL_S
from gateway.identity.rpc.service_tokens import HEARTBEAT_S
from gateway.identity.store.service_tokens import TokenStore
from parley.api.identity.v1 import token_pb2
from parley.api.identity.v1 import token_service_pb2 as tokens_api
from parley.api.identity.v1 import user_service_pb2 as users_api
from parley.api.identity.v1.token_service_pb2_grpc import ServiceTokenServiceStub
from parley.api.identity.v1.user_service_pb2_grpc import UserServiceStub
from parley.identity import Role, ServiceName, TrustFile, User, UserId
from parley.postgres import Database
from parley.rpc import acting_for, connect, problem_of
from support.gateway.stack import GatewayStack
from support.gateway.users import client_with

ASKED = {"name": "nightly", "scopes": ["chat:write", "chat:read"], "lifetime_s": 3600}


@asynccontextmanager
async def channel_of_chatd(stack: GatewayStack) -> AsyncIterator[grpc.aio.Channel]:
    channel = connect(
        stack.gateway.grpc.address,
        audience=ServiceName.GATEWAY,
        signer=stack.chatd_signer,
        telemetry=stack.telemetry.telemetry,
    )
    async with asyncio.timeout(10), channel:
        yield channel


async def owner_of(stack: GatewayStack) -> User:
    me = (await stack.owner.request("GET", "/api/v1/me")).json()
    return User(UserId(me["id"]), Role.OWNER)


def timestamp(stack: GatewayStack, after: timedelta = timedelta()) -> Timestamp:
    moment = Timestamp()
    moment.FromDatetime(stack.clock.now() + after)
    return moment


async def test_a_token_is_issued_listed_without_its_text_and_revoked(stack: GatewayStack) -> None:
    owner = await owner_of(stack)
    issued = await stack.owner.request("POST", "/api/v1/service-tokens", ASKED)
    token = issued.json()
    listed = await stack.owner.request("GET", "/api/v1/service-tokens")
    path = f"/api/v1/service-tokens/{token['id']}"
    revoked = await stack.owner.request("DELETE", path)
    left = await stack.owner.request("GET", "/api/v1/service-tokens")
    ended = await stack.owner.request("GET", "/api/v1/service-tokens?include_ended=true")

    text = token.pop("token")
    assert issued.status == 201
    assert text.count(".") == 2
    assert token == {
        "id": token["id"],
        "name": "nightly",
        "user_id": owner.id,
        "scopes": ["chat:read", "chat:write"],
        "issued_by_user_id": owner.id,
        "issued_at": "2026-01-01T00:00:00Z",
        "expires_at": "2026-01-01T01:00:00Z",
        "revoked_at": None,
        "signing_key_retired": False,
    }
    assert listed.json() == {"items": [token], "next_cursor": None}
    assert revoked.json() == token | {"revoked_at": "2026-01-01T00:00:00Z"}
    assert left.json() == {"items": [], "next_cursor": None}
    assert ended.json()["items"] == [revoked.json()]


async def test_an_administrator_does_not_revoke_the_tokens_of_an_owner(
    stack: GatewayStack, identity_database: str
) -> None:
    admin = await client_with(stack, identity_database, Role.ADMIN)
    owners = (await stack.owner.request("POST", "/api/v1/service-tokens", ASKED)).json()
    own = (await admin.request("POST", "/api/v1/service-tokens", ASKED)).json()
    refused = await admin.request("DELETE", f"/api/v1/service-tokens/{owners['id']}")
    of_admin = await stack.owner.request("DELETE", f"/api/v1/service-tokens/{own['id']}")
    left = await stack.owner.request("GET", "/api/v1/service-tokens")

    assert (refused.status, refused.json()["code"]) == (403, "ROLE_EXCEEDS_CALLER")
    assert of_admin.status == 200
    assert [item["id"] for item in left.json()["items"]] == [owners["id"]]


async def test_tokens_come_in_pages_newest_first(stack: GatewayStack) -> None:
    ids = []
    for number in range(3):
        asked = ASKED | {"name": f"token {number}"}
        ids.append(
            (await stack.owner.request("POST", "/api/v1/service-tokens", asked)).json()["id"]
        )

    first = (await stack.owner.request("GET", "/api/v1/service-tokens?limit=2")).json()
    path = f"/api/v1/service-tokens?limit=2&cursor={first['next_cursor']}"
    second = (await stack.owner.request("GET", path)).json()

    assert [item["id"] for item in first["items"]] == [ids[2], ids[1]]
    assert [item["id"] for item in second["items"]] == [ids[0]]
    assert second["next_cursor"] is None


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"scopes": ["chat:everything"]}, 422, "UNKNOWN_SCOPE"),
        ({"lifetime_s": 5}, 422, "INVALID_REQUEST"),
        ({"name": ""}, 422, "INVALID_REQUEST"),
        ({"user_id": "nobody"}, 404, "USER_NOT_FOUND"),
    ],
)
async def test_a_token_that_cannot_be_is_refused(
    stack: GatewayStack, change: dict[str, object], status: int, code: str
) -> None:
    reply = await stack.owner.request("POST", "/api/v1/service-tokens", ASKED | change)

    assert (reply.status, reply.json()["code"]) == (status, code)


@pytest.mark.parametrize("character", ["\n", "\x1b", "\x7f", "\x85", "\u2028", "\u202e", "\0"])
async def test_a_name_that_does_not_show_as_it_is_is_refused_by_its_field(
    stack: GatewayStack, character: str
) -> None:
    asked = ASKED | {"name": f"night{character}ly"}
    reply = await stack.owner.request("POST", "/api/v1/service-tokens", asked)

    (error,) = reply.json()["errors"]
    assert (reply.status, error["pointer"]) == (422, "/name")


async def test_a_repeated_request_does_not_tell_the_token_again(stack: GatewayStack) -> None:
    key = {"Idempotency-Key": '"once"'}
    first = await stack.owner.request("POST", "/api/v1/service-tokens", ASKED, key)
    second = await stack.owner.request("POST", "/api/v1/service-tokens", ASKED, key)

    problem = second.json()
    assert (second.status, problem["code"]) == (409, "TOKEN_ALREADY_ISSUED")
    assert problem["token_id"] == first.json()["id"]


@pytest.mark.parametrize("query", ["limit=0", "cursor=x", "include_ended=maybe", "page=2"])
async def test_a_list_is_asked_for_with_what_it_knows(stack: GatewayStack, query: str) -> None:
    reply = await stack.owner.request("GET", f"/api/v1/service-tokens?{query}")

    (error,) = reply.json()["errors"]
    assert (reply.status, error["parameter"]) == (422, query.partition("=")[0])


@pytest.mark.parametrize("token_id", ["nonsense", "00000000-0000-0000-0000-000000000001"])
async def test_revoking_what_is_no_token_finds_nothing(stack: GatewayStack, token_id: str) -> None:
    reply = await stack.owner.request("DELETE", f"/api/v1/service-tokens/{token_id}")

    assert (reply.status, reply.json()["code"]) == (404, "TOKEN_NOT_FOUND")


async def test_followers_get_a_snapshot_then_changes_then_heartbeats(stack: GatewayStack) -> None:
    first = (await stack.owner.request("POST", "/api/v1/service-tokens", ASKED)).json()["id"]
    second = (await stack.owner.request("POST", "/api/v1/service-tokens", ASKED)).json()["id"]
    await stack.owner.request("DELETE", f"/api/v1/service-tokens/{first}")
    expires_at = timestamp(stack, timedelta(hours=1))
    await stack.gateway.feed.newer_than(0, within_s=5)

    async with channel_of_chatd(stack) as channel:
        call = ServiceTokenServiceStub(channel).WatchRevocations(
            tokens_api.WatchRevocationsRequest()
        )
        snapshot = await call.read()
        await stack.owner.request("DELETE", f"/api/v1/service-tokens/{second}")
        change = await call.read()
        await stack.clock.until_sleeping_for(HEARTBEAT_S)
        stack.clock.advance(HEARTBEAT_S)
        heartbeat = await call.read()
        sent_at = timestamp(stack)
        call.cancel()

    def revoked(token_id: str) -> token_pb2.RevokedToken:
        return token_pb2.RevokedToken(token_id=token_id, expires_at=expires_at)

    assert [snapshot, change, heartbeat] == [
        tokens_api.WatchRevocationsResponse(
            snapshot=tokens_api.RevocationSnapshot(version=1, revoked_tokens=[revoked(first)])
        ),
        tokens_api.WatchRevocationsResponse(
            change=tokens_api.RevocationChange(
                previous_version=1, version=2, revoked_tokens=[revoked(second)]
            )
        ),
        tokens_api.WatchRevocationsResponse(
            heartbeat=tokens_api.RevocationHeartbeat(version=2, sent_at=sent_at)
        ),
    ]


async def test_a_revocation_the_bus_lost_is_found_by_the_poll(
    stack: GatewayStack, identity_database: str
) -> None:
    token = (await stack.owner.request("POST", "/api/v1/service-tokens", ASKED)).json()["id"]
    async with (
        channel_of_chatd(stack) as channel,
        Database.open(identity_database, application_name="test", connections_max=2) as database,
    ):
        call = ServiceTokenServiceStub(channel).WatchRevocations(
            tokens_api.WatchRevocationsRequest()
        )
        await call.read()
        await TokenStore(database).revoke(token, now=stack.clock.now())
        await stack.clock.until_sleeping_for(HEARTBEAT_S)
        await stack.clock.until_sleeping_for(POLL_S)
        stack.clock.advance(POLL_S)
        response = await call.read()
        call.cancel()

    assert isinstance(response, tokens_api.WatchRevocationsResponse)
    assert [each.token_id for each in response.change.revoked_tokens] == [token]


async def test_a_stopping_gateway_lets_followers_go(stack: GatewayStack) -> None:
    async with channel_of_chatd(stack) as channel:
        call = ServiceTokenServiceStub(channel).WatchRevocations(
            tokens_api.WatchRevocationsRequest()
        )
        await call.read()
        stack.gateway.stop()
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            await call.read()

    problem = problem_of(ended.value)
    assert (problem.status, problem.reason) == (grpc.StatusCode.UNAVAILABLE, "DRAINING")


async def test_other_services_read_users_by_id(stack: GatewayStack) -> None:
    owner = await owner_of(stack)
    async with channel_of_chatd(stack) as channel:
        users = UserServiceStub(channel)
        user = (await users.GetUser(users_api.GetUserRequest(user_id=owner.id))).user
        named = await users.BatchGetUsers(
            users_api.BatchGetUsersRequest(user_ids=[owner.id, "nonsense", owner.id])
        )
        with pytest.raises(grpc.aio.AioRpcError) as unserved:
            await users.ListUsers(users_api.ListUsersRequest())
        with pytest.raises(grpc.aio.AioRpcError) as absent:
            await users.GetUser(users_api.GetUserRequest(user_id="nobody"))

    assert (user.user_id, user.login, user.version) == (owner.id, "owner", 1)
    assert [each.login for each in named.users] == ["owner"]
    assert problem_of(unserved.value).status is grpc.StatusCode.PERMISSION_DENIED
    assert problem_of(absent.value).reason == "USER_NOT_FOUND"


async def test_to_a_member_everyone_else_looks_absent(stack: GatewayStack) -> None:
    owner = await owner_of(stack)
    member = User(UserId("00000000-0000-0000-0000-000000000001"), Role.MEMBER)
    async with channel_of_chatd(stack) as channel:
        with acting_for(member), pytest.raises(grpc.aio.AioRpcError) as refused:
            await UserServiceStub(channel).GetUser(users_api.GetUserRequest(user_id=owner.id))

    assert problem_of(refused.value).reason == "USER_NOT_FOUND"


async def test_tokens_of_a_retired_signing_key_are_not_listed_as_valid(
    stack: GatewayStack,
) -> None:
    path = "/api/v1/service-tokens"
    issued = (await stack.owner.request("POST", path, ASKED)).json()
    file = TrustFile(stack.settings.trust_file)
    (key,) = (key for key in file.read() if key.service is ServiceName.GATEWAY)
    before = (await stack.owner.request("GET", path)).json()["items"]
    file.retire_key(key.kid, now=stack.clock.now(), overlap_s=0)
    stack.clock.advance(60)
    after = (await stack.owner.request("GET", path)).json()["items"]
    ended = (await stack.owner.request("GET", f"{path}?include_ended=true")).json()["items"]

    listed = {name: value for name, value in issued.items() if name != "token"}
    assert before == [listed]
    assert after == []
    assert ended == [listed | {"signing_key_retired": True}]

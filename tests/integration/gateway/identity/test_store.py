import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import NAMESPACE_URL, uuid5

import pytest

from gateway.identity.domain import RevokedSet, RevokedToken, ServiceTokenRecord, UserRecord
from gateway.identity.errors import TokenAlreadyIssued, TokenNotFound
from gateway.identity.store.credentials import IdentityStore
from gateway.identity.store.schema import SCHEMA, metadata
from gateway.identity.store.service_tokens import TokenStore
from parley.identity import ApiKey
from parley.postgres import Database
from support.database.schema_drift import drift

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def some_id(name: str) -> str:
    return str(uuid5(NAMESPACE_URL, name))


@pytest.fixture
async def database(identity_database: str) -> AsyncIterator[Database]:
    async with Database.open(
        identity_database, application_name="test", connections_max=16
    ) as opened:
        yield opened


async def owner_of(database: Database) -> UserRecord:
    return await IdentityStore(database).ensure_owner(
        new_user_id=some_id("owner"), key=ApiKey.generate(), now=NOW
    )


def token(
    owner: UserRecord, name: str, lifetime: timedelta = timedelta(days=1)
) -> ServiceTokenRecord:
    return ServiceTokenRecord(
        id=some_id(name),
        name=name,
        user_id=owner.id,
        scopes=("chat:read",),
        issued_by_user_id=owner.id,
        issued_at=NOW,
        expires_at=NOW + lifetime,
    )


async def test_migrations_make_what_the_schema_declares(identity_database: str) -> None:
    assert await drift(identity_database, metadata, SCHEMA) == ()


async def test_gateways_that_start_together_agree_on_one_owner_and_key(database: Database) -> None:
    people, key = IdentityStore(database), ApiKey.generate()

    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        starts = [
            tasks.create_task(
                people.ensure_owner(new_user_id=some_id(f"start {number}"), key=key, now=NOW)
            )
            for number in range(4)
        ]

    owners = {start.result() for start in starts}
    stored = await people.find_api_key(key.id)
    assert len(owners) == 1
    assert stored is not None
    assert ({stored.user}, stored.digest, stored.revoked_at) == (owners, key.digest(), None)


async def test_another_owner_key_replaces_the_one_before_and_may_come_back(
    database: Database,
) -> None:
    people, first, second = IdentityStore(database), ApiKey.generate(), ApiKey.generate()

    async def revoked_after(key: ApiKey) -> list[bool]:
        await people.ensure_owner(new_user_id=some_id("owner"), key=key, now=NOW)
        stored = [await people.find_api_key(each.id) for each in (first, second)]
        return [each is None or each.revoked_at is not None for each in stored]

    assert await revoked_after(first) == [False, True]
    assert await revoked_after(second) == [True, False]
    assert await revoked_after(first) == [False, True]


async def test_revocations_are_numbered_without_gaps_under_races(database: Database) -> None:
    owner, tokens = await owner_of(database), TokenStore(database)
    names = [f"token {number}" for number in range(6)]
    for name in names:
        await tokens.add(token(owner, name), request_id=name)

    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        for name in names:
            tasks.create_task(tokens.revoke(some_id(name), now=NOW))

    revoked = await tokens.revoked(now=NOW)
    assert revoked.version == 6
    assert [each.revocation for each in revoked.tokens] == [1, 2, 3, 4, 5, 6]
    assert {each.id for each in revoked.tokens} == {some_id(name) for name in names}


async def test_revoking_twice_changes_nothing(database: Database) -> None:
    owner, tokens = await owner_of(database), TokenStore(database)
    await tokens.add(token(owner, "one"), request_id="one")

    first = await tokens.revoke(some_id("one"), now=NOW)
    second = await tokens.revoke(some_id("one"), now=NOW + timedelta(hours=1))

    assert first == second
    assert first[1] == 1


async def test_an_expired_token_leaves_the_revoked_set(database: Database) -> None:
    owner, tokens = await owner_of(database), TokenStore(database)
    short = token(owner, "short", timedelta(hours=1))
    long = token(owner, "long", timedelta(days=2))
    for each in (short, long):
        await tokens.add(each, request_id=each.name)
        await tokens.revoke(each.id, now=NOW)

    revoked = await tokens.revoked(now=NOW + timedelta(days=1))

    assert revoked == RevokedSet(2, (RevokedToken(long.id, long.expires_at, 2),))


async def test_a_repeated_request_issues_no_second_token(database: Database) -> None:
    owner, tokens = await owner_of(database), TokenStore(database)
    await tokens.add(token(owner, "one"), request_id="same")

    with pytest.raises(TokenAlreadyIssued) as refused:
        await tokens.add(token(owner, "two"), request_id="same")

    assert refused.value.token_id == some_id("one")


async def test_a_token_that_does_not_exist_cannot_be_revoked(database: Database) -> None:
    with pytest.raises(TokenNotFound):
        await TokenStore(database).revoke(some_id("none"), now=NOW)

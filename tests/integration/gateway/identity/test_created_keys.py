"""A key that is created is known at once, also if its id was tried before."""

from datetime import UTC, datetime
from uuid import NAMESPACE_URL, uuid5

from gateway.identity.engine.api_key_cache import ApiKeyCache
from gateway.identity.engine.api_keys import ApiKeys, NewApiKey
from gateway.identity.engine.users import Users
from gateway.identity.store.api_keys import ApiKeyStore
from gateway.identity.store.credentials import IdentityStore
from gateway.identity.store.users import UserStore
from parley.bus import InMemoryBus
from parley.clock import FakeClock
from parley.identity import ApiKey, User
from parley.postgres import Database

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def some_id() -> str:
    return str(uuid5(NAMESPACE_URL, "some"))


def zeros(size: int) -> bytes:
    return bytes(size)


async def test_an_id_that_was_unknown_is_known_when_its_key_is_created(
    identity_database: str,
) -> None:
    clock = FakeClock()
    async with Database.open(
        identity_database, application_name="test", connections_max=4
    ) as database:
        people = IdentityStore(database)
        owner = await people.ensure_owner(new_user_id=some_id(), key=ApiKey.generate(), now=NOW)
        cache = ApiKeyCache(people.find_api_key, clock)
        users = Users(
            UserStore(database),
            people,
            bus=InMemoryBus(),
            clock=clock,
            new_id=some_id,
            changed=cache.forget,
        )
        keys = ApiKeys(
            ApiKeyStore(database),
            users,
            scopes=(),
            clock=clock,
            token_bytes=zeros,
            changed=cache.forget,
        )
        key_id = ApiKey.generate(zeros).id
        before = await cache.find(key_id)
        await keys.create(User(owner.id, owner.role), NewApiKey("r", owner.id, "mine"))
        after = await cache.find(key_id)
    assert before is None
    assert after is not None

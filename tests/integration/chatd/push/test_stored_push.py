"""Stored subscriptions and the stored key: encrypted, rotated, and made once."""

import asyncio

import pytest

from chatd.primitives.domain.ids import OwnerId
from chatd.push.clients.vapid import VapidKey
from chatd.push.domain.subscription import PushAddress, PushTarget
from chatd.push.store.keys import PostgresPushKeys
from chatd.push.store.subscriptions import NewSubscription, PostgresSubscriptions
from chatd.resources import STORED_KEYS
from parley.postgres import Pool
from parley.secrets import Keyring, SecretBox, SecretsError
from support.chatd.chats.chat_people import ANN_ID, BOB_ID
from support.net.push_service import Browser

ID = "00000000-0000-4000-8000-0000000000d1"
BROWSER = Browser()
ADDRESS = PushAddress("https://push.example.com/secret-path", BROWSER.public_key, BROWSER.auth)


def new(owner_id: OwnerId = ANN_ID, subscription_id: str = ID) -> NewSubscription:
    return NewSubscription(subscription_id, owner_id, "laptop", "push.example.com", ADDRESS, b"1")


async def test_an_address_is_encrypted_and_read_back(pool: Pool) -> None:
    changed: list[OwnerId] = []
    stored = PostgresSubscriptions(pool, SecretBox(Keyring.generate()), changed.append)
    shown = await stored.put(new())
    target = PushTarget(shown.id, ANN_ID, ADDRESS)
    assert await stored.targets(ANN_ID) == (target,)
    assert await stored.target(ANN_ID, shown.id) == target
    assert await stored.targets(BOB_ID) == ()
    row = await pool.fetchrow("SELECT * FROM chat.push_subscriptions")
    assert row is not None
    assert b"secret-path" not in row["sealed"] + row["endpoint_hash"]
    await stored.record(target, "it is down (503)")
    (failed,) = await stored.of_owner(ANN_ID)
    assert (failed.last_error, failed.last_sent_at) == ("it is down (503)", None)
    await stored.record(target, "")
    (sent,) = await stored.of_owner(ANN_ID)
    assert (sent.last_error, sent.last_sent_at is not None) == ("", True)
    await stored.delete_ended(target)
    assert await stored.of_owner(ANN_ID) == ()
    assert changed == [ANN_ID, ANN_ID]


async def test_processes_that_make_the_key_at_the_same_time_get_the_same_one(pool: Pool) -> None:
    box = SecretBox(Keyring.generate())
    keys = [PostgresPushKeys(pool, box, lambda: VapidKey.generate().stored()) for _ in range(4)]
    async with asyncio.TaskGroup() as tasks:
        made = [tasks.create_task(each.private_key()) for each in keys]
    assert len({task.result() for task in made}) == 1
    assert await pool.fetchval("SELECT count(*) FROM chat.push_keys") == 1


async def test_addresses_and_the_key_follow_the_master_key(pool: Pool) -> None:
    keyring = Keyring.generate()
    stored = PostgresSubscriptions(pool, SecretBox(keyring))
    keys = PostgresPushKeys(pool, SecretBox(keyring), lambda: VapidKey.generate().stored())
    shown, private_key = await stored.put(new()), await keys.private_key()
    rotated = Keyring((*Keyring.generate().keys, *keyring.keys))
    await STORED_KEYS.adopt(pool, rotated)
    only_new = SecretBox(Keyring(rotated.keys[:1]))
    after = PostgresSubscriptions(pool, only_new)
    assert await after.targets(ANN_ID) == (PushTarget(shown.id, ANN_ID, ADDRESS),)
    assert await PostgresPushKeys(pool, only_new, lambda: b"").private_key() == private_key


async def test_devices_that_cannot_be_decrypted_are_left_out(pool: Pool) -> None:
    await PostgresSubscriptions(pool, SecretBox(Keyring.generate())).put(new())
    other = PostgresSubscriptions(pool, SecretBox(Keyring.generate()))
    assert await other.targets(ANN_ID) == ()
    with pytest.raises(SecretsError):
        await other.target(ANN_ID, ID)

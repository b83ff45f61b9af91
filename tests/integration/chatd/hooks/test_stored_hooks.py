"""Stored hooks and the log of deliveries: one suite for PostgreSQL and for memory."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from chatd.hooks.domain.errors import TooManyHooks
from chatd.hooks.domain.hooks import HOOKS_MAX, FailPolicy, HookEvent
from chatd.hooks.domain.ports import Delivery, DeliveryLog, HookOutcome
from chatd.hooks.store.deliveries import DELIVERIES_MAX, PostgresDeliveries
from chatd.hooks.store.hooks import PostgresHooks
from chatd.primitives.domain.errors import RequestIdReused, ResourceNotFound, VersionConflict
from chatd.resources import STORED_KEYS
from parley.postgres import Pool
from parley.secrets import Keyring, SecretBox, SecretsError
from parley.settings import Secret
from support.chatd.hooks.in_memory_hooks import HOOK_ID, InMemoryDeliveries, InMemoryHooks, hook

SECRET = Secret("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")
HOUR = timedelta(hours=1)
OTHER_ID = "00000000-0000-4000-8000-0000000000f1"


@pytest.fixture
def changes() -> list[None]:
    return []


@pytest.fixture
def stored(pool: Pool, changes: list[None]) -> PostgresHooks:
    return PostgresHooks(pool, SecretBox(Keyring.generate()), lambda: changes.append(None))


@pytest.fixture(params=("postgres", "memory"))
async def log(request: pytest.FixtureRequest, pool: Pool, stored: PostgresHooks) -> DeliveryLog:
    await stored.create(hook(), SECRET, b"1")
    await stored.create(hook(id=OTHER_ID, name="other"), SECRET, b"2")
    return PostgresDeliveries(pool) if request.param == "postgres" else InMemoryDeliveries()


def delivery(number: int, **more: Any) -> Delivery:
    given = Delivery(
        HOOK_ID,
        f"00000000-0000-4000-8000-{number:012}",
        "00000000-0000-4000-8000-00000000000c",
        HookEvent.PRE_TOOL_USE,
        "execute",
        HookOutcome.ALLOW,
        200,
        "",
        12,
    )
    return replace(given, **more)


def timeless(found: Sequence[Delivery]) -> list[Delivery]:
    return [replace(each, created_at=None) for each in found]


async def test_the_log_has_the_newest_deliveries_of_a_hook_first(log: DeliveryLog) -> None:
    await log.add(delivery(1))
    await log.add(delivery(2, hook_id=OTHER_ID, chat_id="", tool_name=""))
    failed = delivery(3, outcome=HookOutcome.FAILED, http_status=0, problem="it is down")
    await log.add(failed)
    assert timeless(await log.deliveries(HOOK_ID, 9)) == [failed, delivery(1)]
    assert timeless(await log.deliveries(HOOK_ID, 1)) == [failed]
    assert timeless(await log.deliveries(OTHER_ID, 9)) == [
        delivery(2, hook_id=OTHER_ID, chat_id="", tool_name="")
    ]


async def test_the_log_has_the_notice_of_an_answer(log: DeliveryLog) -> None:
    await log.add(delivery(1, notice="Mind the gap."))
    assert timeless(await log.deliveries(HOOK_ID, 9)) == [delivery(1, notice="Mind the gap.")]
    await log.add(delivery(1))
    assert timeless(await log.deliveries(HOOK_ID, 9)) == [delivery(1, attempts=2)]


async def test_a_repeated_delivery_is_one_entry_with_the_last_outcome(log: DeliveryLog) -> None:
    await log.add(delivery(1, outcome=HookOutcome.FAILED, problem="it is down"))
    await log.add(delivery(2))
    await log.add(delivery(1))
    assert timeless(await log.deliveries(HOOK_ID, 9)) == [
        delivery(1, attempts=2),
        delivery(2),
    ]


async def test_the_log_is_bounded(log: DeliveryLog) -> None:
    for number in range(DELIVERIES_MAX + 5):
        await log.add(delivery(number))
    found = timeless(await log.deliveries(HOOK_ID, 1000))
    assert found == [delivery(number) for number in range(DELIVERIES_MAX + 4, 4, -1)]


async def test_the_log_of_a_deleted_hook_is_gone(pool: Pool, stored: PostgresHooks) -> None:
    log = PostgresDeliveries(pool)
    await stored.create(hook(), SECRET, b"1")
    await log.add(delivery(1))
    await stored.delete(HOOK_ID)
    await log.add(delivery(2))
    assert await log.deliveries(HOOK_ID, 9) == ()


async def test_hooks_are_kept_in_the_order_of_their_creation(stored: PostgresHooks) -> None:
    memory = InMemoryHooks([])
    other = hook(HookEvent.STOP, id=OTHER_ID, name="other", tools=("a*",))
    for number, given in enumerate((hook(), other)):
        await stored.create(given, SECRET, bytes([number]))
        memory.kept.append(given)
    found = tuple(replace(each, created_at=None) for each in await stored.all())
    assert found == await memory.all()


async def test_a_repeated_request_finds_its_hook_and_the_same_secret(
    stored: PostgresHooks, changes: list[None]
) -> None:
    first, secret = await stored.create(hook(), SECRET, b"1")
    again, same = await stored.create(hook(name="other"), Secret("whsec_b3RoZXI="), b"1")
    assert (first, secret.reveal()) == (again, same.reveal())
    with pytest.raises(RequestIdReused):
        await stored.create(hook(), SECRET, b"2")
    assert await revealed(stored) == [SECRET.reveal()]
    assert len(changes) == 1


async def revealed(stored: PostgresHooks) -> list[str]:
    return [secret.reveal() for secret in await stored.secrets(HOOK_ID)]


async def test_a_secret_is_rotated_once_for_each_request(
    stored: PostgresHooks, changes: list[None]
) -> None:
    first, second, third = SECRET, Secret("whsec_Mg=="), Secret("whsec_Mw==")
    made, _ = await stored.create(hook(), first, b"1")
    rotated, given = await stored.rotate_secret(HOOK_ID, second, HOUR, b"2")
    assert (rotated.version, given.reveal()) == (made.version + 1, second.reveal())
    again, same = await stored.rotate_secret(HOOK_ID, third, HOUR, b"2")
    assert (again, same.reveal()) == (rotated, second.reveal())
    assert rotated.previous_secret_until is not None
    assert await revealed(stored) == [second.reveal(), first.reveal()]
    await stored.rotate_secret(HOOK_ID, third, HOUR, b"3")
    assert await revealed(stored) == [third.reveal(), second.reveal()]
    ended, _ = await stored.rotate_secret(HOOK_ID, first, timedelta(), b"4")
    assert (ended.previous_secret_until, await revealed(stored)) == (None, [first.reveal()])
    assert len(changes) == 4
    with pytest.raises(ResourceNotFound):
        await stored.rotate_secret(OTHER_ID, first, HOUR, b"5")


async def test_a_previous_secret_signs_until_its_time_is_over(
    pool: Pool, stored: PostgresHooks
) -> None:
    await stored.create(hook(), SECRET, b"1")
    await stored.rotate_secret(HOOK_ID, Secret("whsec_Mg=="), HOUR, b"2")
    await pool.execute("UPDATE chat.hooks SET previous_until = previous_until - interval '1 hour'")
    assert await revealed(stored) == ["whsec_Mg=="]
    assert (await stored.find(HOOK_ID)).previous_secret_until is None


async def test_a_previous_secret_follows_the_master_key(pool: Pool) -> None:
    old = Keyring.generate()
    await PostgresHooks(pool, SecretBox(old)).create(hook(), SECRET, b"1")
    await PostgresHooks(pool, SecretBox(old)).rotate_secret(
        HOOK_ID, Secret("whsec_Mg=="), HOUR, b"2"
    )
    new = Keyring((*Keyring.generate().keys, *old.keys))
    await STORED_KEYS.adopt(pool, new)
    after = PostgresHooks(pool, SecretBox(Keyring(new.keys[:1])))
    assert await revealed(after) == ["whsec_Mg==", SECRET.reveal()]


async def test_a_secret_that_cannot_be_decrypted_is_replaced(pool: Pool) -> None:
    await PostgresHooks(pool, SecretBox(Keyring.generate())).create(hook(), SECRET, b"1")
    stored = PostgresHooks(pool, SecretBox(Keyring.generate()))
    with pytest.raises(SecretsError):
        await stored.secrets(HOOK_ID)
    rotated, _ = await stored.rotate_secret(HOOK_ID, Secret("whsec_Mg=="), HOUR, b"2")
    assert rotated.previous_secret_until is None
    assert await revealed(stored) == ["whsec_Mg=="]


async def test_the_secret_is_sealed(pool: Pool, stored: PostgresHooks) -> None:
    await stored.create(hook(), SECRET, b"1")
    row = await pool.fetchval("SELECT hooks::text FROM chat.hooks")
    assert SECRET.reveal() not in row
    assert SECRET.reveal().encode().hex() not in row


async def test_a_change_needs_the_version_that_it_was_made_from(stored: PostgresHooks) -> None:
    await stored.create(hook(), SECRET, b"1")
    changed = await stored.update(
        HOOK_ID, lambda each: replace(each, fail_policy=FailPolicy.OPEN), 1
    )
    assert (changed.fail_policy, changed.version) == (FailPolicy.OPEN, 2)
    with pytest.raises(VersionConflict):
        await stored.update(HOOK_ID, lambda each: each, 1)
    with pytest.raises(ResourceNotFound):
        await stored.update(OTHER_ID, lambda each: each, None)
    with pytest.raises(ResourceNotFound):
        await stored.delete(OTHER_ID)
    with pytest.raises(ResourceNotFound):
        await stored.find(OTHER_ID)
    with pytest.raises(ResourceNotFound):
        await stored.secrets(OTHER_ID)


async def test_there_are_only_so_many_hooks(stored: PostgresHooks) -> None:
    for number in range(HOOKS_MAX):
        another = hook(id=delivery(number).dispatch_id, name=f"hook {number}")
        await stored.create(another, SECRET, b"1")
    with pytest.raises(TooManyHooks):
        await stored.create(hook(), SECRET, b"1")

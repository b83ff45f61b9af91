"""Push subscriptions over a real database whose push services may be on this machine."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from chatd.primitives.domain.ids import OwnerId
from chatd.push.clients.endpoints import endpoint_check
from chatd.push.clients.names import LookUp, PushNames, looked_up
from chatd.push.clients.push_services import ANSWER_BYTES_MAX, PushServices
from chatd.push.clients.vapid import VapidKey
from chatd.push.engine.cached_targets import CachedTargets
from chatd.push.engine.delivery import PushDelivery
from chatd.push.engine.outbox import PushOutbox
from chatd.push.rpc.servicer import PushPorts, PushServicer
from chatd.push.store.chat_facts import PostgresChatFacts
from chatd.push.store.keys import PostgresPushKeys
from chatd.push.store.subscriptions import PostgresSubscriptions
from parley.clock import Clock, SystemClock
from parley.egress import GuardedSender, Policy
from parley.postgres import Pool
from parley.secrets import Keyring, SecretBox
from parley.telemetry.redaction import Redactor

CONTACT = "mailto:operator@example.com"


@dataclass(frozen=True, slots=True)
class ServedPush:
    """Push subscriptions and their components."""

    stored: PostgresSubscriptions
    keys: PostgresPushKeys
    targets: CachedTargets
    delivery: PushDelivery
    outbox: PushOutbox
    servicer: PushServicer
    changed: list[OwnerId] = field(default_factory=list)

    async def public_key(self) -> str:
        """Return the public key of the installation."""
        return VapidKey.load(await self.keys.private_key()).public_key


@asynccontextmanager
async def served_push(
    pool: Pool,
    *,
    clock: Clock | None = None,
    keyring: Keyring | None = None,
    allowed: str = "127.0.0.0/8",
    timeout_s: float = 5.0,
    look_up: LookUp = looked_up,
) -> AsyncIterator[ServedPush]:
    """Give push subscriptions that may name push services on this machine."""
    time = SystemClock() if clock is None else clock
    policy, clean = Policy.parse(allowed), Redactor().clean
    changed: list[OwnerId] = []

    def forget(owner_id: OwnerId) -> None:
        changed.append(owner_id)
        targets.forget(owner_id)

    async with GuardedSender.open(
        policy,
        answer_bytes_max=ANSWER_BYTES_MAX,
        request_s_max=timeout_s,
        resolve=PushNames(look_up, time).addresses,
    ) as guarded:
        box = SecretBox(Keyring.generate() if keyring is None else keyring)
        stored = PostgresSubscriptions(pool, box, forget)
        keys = PostgresPushKeys(pool, box, lambda: VapidKey.generate().stored())

        async def key() -> VapidKey:
            return VapidKey.load(await keys.private_key())

        sender = PushServices(
            guarded, key, contact=CONTACT, clock=SystemClock(), token_bytes=os.urandom
        )
        targets = CachedTargets(stored, time)
        delivery = PushDelivery(sender, stored, clock=time, clean=clean)
        outbox = PushOutbox(PostgresChatFacts(pool), targets, delivery, clock=time, clean=clean)
        servicer = PushServicer(PushPorts(stored, key, delivery, endpoint_check(guarded, policy)))
        yield ServedPush(stored, keys, targets, delivery, outbox, servicer, changed)

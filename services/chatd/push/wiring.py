"""Wiring of the slice `push`."""

import secrets
from contextlib import AsyncExitStack
from dataclasses import dataclass

from chatd.bus_handlers import PUSH_TOPIC
from chatd.primitives.domain.ids import OwnerId
from chatd.push.clients.endpoints import endpoint_check
from chatd.push.clients.names import PushNames, looked_up
from chatd.push.clients.push_services import ANSWER_BYTES_MAX, TIMEOUT_S_MAX, PushServices
from chatd.push.clients.vapid import VapidKey
from chatd.push.engine.cached_targets import CachedTargets
from chatd.push.engine.delivery import PushDelivery
from chatd.push.engine.outbox import PushOutbox
from chatd.push.rpc.servicer import PushPorts, PushServicer
from chatd.push.store.chat_facts import PostgresChatFacts
from chatd.push.store.keys import PostgresPushKeys
from chatd.push.store.subscriptions import PostgresSubscriptions
from chatd.resources import Resources
from parley.bus import Notice
from parley.egress import GuardedSender
from parley.secrets import SecretBox


@dataclass(frozen=True, slots=True)
class PushComponents:
    """The components of the slice `push`.

    Attributes:
        outbox: Tells the owners of chats what happened.
        targets: The cached devices of users.
        servicer: Serves the subscriptions of users.
    """

    outbox: PushOutbox
    targets: CachedTargets
    servicer: PushServicer


async def open_push(resources: Resources, box: SecretBox, stack: AsyncExitStack) -> PushComponents:
    """Return the components; a change reaches every process, this one at once."""
    process, pool = resources.process, resources.pool
    policy = resources.settings.push_allowed_hosts.named("CHATD_PUSH_ALLOWED_HOSTS")

    def changed(owner_id: OwnerId) -> None:
        targets.forget(owner_id)
        resources.bus.publish(Notice(PUSH_TOPIC, owner_id, 0))

    stored = PostgresSubscriptions(pool, box, changed)
    targets = CachedTargets(stored, process.clock)
    keys = PostgresPushKeys(pool, box, lambda: VapidKey.generate().stored())

    async def key() -> VapidKey:
        return VapidKey.load(await keys.private_key())

    names = PushNames(looked_up, process.clock)
    guarded = await stack.enter_async_context(
        GuardedSender.open(
            policy,
            answer_bytes_max=ANSWER_BYTES_MAX,
            request_s_max=TIMEOUT_S_MAX,
            resolve=names.addresses,
        )
    )
    delivery = PushDelivery(
        PushServices(
            guarded,
            key,
            contact=resources.settings.push_contact,
            clock=process.clock,
            token_bytes=secrets.token_bytes,
        ),
        stored,
        clock=process.clock,
        clean=process.telemetry.clean,
    )
    process.telemetry.registry.register(delivery.durations)
    stack.callback(process.telemetry.registry.unregister, delivery.durations)
    outbox = PushOutbox(
        PostgresChatFacts(pool),
        targets,
        delivery,
        clock=process.clock,
        clean=process.telemetry.clean,
    )
    ports = PushPorts(stored, key, delivery, endpoint_check(guarded, policy))
    return PushComponents(outbox, targets, PushServicer(ports))

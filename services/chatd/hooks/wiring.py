"""Wiring of the slice `hooks`."""

import secrets
from contextlib import AsyncExitStack
from dataclasses import dataclass

from chatd.bus_handlers import HOOKS_TOPIC
from chatd.faults import Faults
from chatd.hooks.clients.webhooks import ANSWER_BYTES_MAX, TIMEOUT_S_MAX, WebhookSender, new_secret
from chatd.hooks.engine.cached_hooks import CachedHooks
from chatd.hooks.engine.chat_hooks import ChatHooks
from chatd.hooks.engine.dispatch import HookDispatcher
from chatd.hooks.rpc.servicer import HookPorts, HookServicer
from chatd.hooks.store.deliveries import PostgresDeliveries
from chatd.hooks.store.hooks import PostgresHooks
from chatd.resources import Resources
from parley.bus import Notice
from parley.egress import GuardedSender
from parley.secrets import SecretBox


@dataclass(frozen=True, slots=True)
class HookComponents:
    """The components of the slice `hooks`.

    Attributes:
        cached: The hooks that events go to.
        chats: Sends the events of chats.
        servicer: Serves their administration.
    """

    cached: CachedHooks
    chats: ChatHooks
    servicer: HookServicer


async def open_hooks(
    resources: Resources, faults: Faults, box: SecretBox, stack: AsyncExitStack
) -> HookComponents:
    """Return the components; a change reaches every process, this one at once."""
    process = resources.process

    def changed() -> None:
        cached.forget()
        resources.bus.publish(Notice(HOOKS_TOPIC, "all", 0))

    stored, log = PostgresHooks(resources.pool, box, changed), PostgresDeliveries(resources.pool)
    cached = CachedHooks(stored, process.clock)
    guarded = await stack.enter_async_context(
        GuardedSender.open(
            resources.settings.allowed_hosts.named("CHATD_ALLOWED_HOSTS"),
            answer_bytes_max=ANSWER_BYTES_MAX,
            request_s_max=TIMEOUT_S_MAX,
        )
    )
    dispatcher = HookDispatcher(
        cached,
        sender=faults.hook_sender(WebhookSender(guarded, stored.secrets, process.clock)),
        log=log,
        clock=process.clock,
        clean=process.telemetry.clean,
    )
    for metric in (dispatcher.durations, dispatcher.contexts):
        process.telemetry.registry.register(metric)
        stack.callback(process.telemetry.registry.unregister, metric)
    ports = HookPorts(
        stored, log, dispatcher, guarded.check, lambda: new_secret(secrets.token_bytes)
    )
    return HookComponents(cached, ChatHooks(dispatcher), HookServicer(ports))

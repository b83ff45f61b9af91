"""Hooks over a real database that reach consumers on this machine."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from chatd.hooks.clients.webhooks import ANSWER_BYTES_MAX, TIMEOUT_S_MAX, WebhookSender, new_secret
from chatd.hooks.engine.cached_hooks import CachedHooks
from chatd.hooks.engine.chat_hooks import ChatHooks
from chatd.hooks.engine.dispatch import HookDispatcher
from chatd.hooks.rpc.servicer import HookPorts, HookServicer
from chatd.hooks.store.deliveries import PostgresDeliveries
from chatd.hooks.store.hooks import PostgresHooks
from parley.clock import SystemClock
from parley.egress import GuardedSender, Policy
from parley.postgres import Pool
from parley.secrets import Keyring, SecretBox
from parley.telemetry.redaction import Redactor


@dataclass(frozen=True, slots=True)
class ServedHooks:
    """Hooks and their components."""

    stored: PostgresHooks
    log: PostgresDeliveries
    dispatcher: HookDispatcher
    chats: ChatHooks
    servicer: HookServicer


@asynccontextmanager
async def served_hooks(pool: Pool) -> AsyncIterator[ServedHooks]:
    """Give hooks whose consumers may be on this machine."""
    policy, clock = Policy.parse("127.0.0.0/8"), SystemClock()
    async with GuardedSender.open(
        policy, answer_bytes_max=ANSWER_BYTES_MAX, request_s_max=TIMEOUT_S_MAX
    ) as guarded:
        box = SecretBox(Keyring.generate())
        stored = PostgresHooks(pool, box, lambda: cached.forget())
        log, cached = PostgresDeliveries(pool), CachedHooks(stored, clock)
        dispatcher = HookDispatcher(
            cached,
            sender=WebhookSender(guarded, stored.secrets, clock),
            log=log,
            clock=clock,
            clean=Redactor().clean,
        )
        ports = HookPorts(
            stored, log, dispatcher, guarded.check, lambda: new_secret(secrets.token_bytes)
        )
        yield ServedHooks(stored, log, dispatcher, ChatHooks(dispatcher), HookServicer(ports))

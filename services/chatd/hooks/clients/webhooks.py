"""Sends events as signed webhooks: headers and signature of the Standard Webhooks specification."""

import asyncio
import base64
import hashlib
import hmac
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from chatd.hooks.domain.hooks import Hook
from chatd.hooks.domain.ports import DeliveryFailed, HookAnswer
from chatd.primitives.domain.errors import ResourceNotFound
from parley.clock import Clock
from parley.egress import SendFailed
from parley.secrets import SecretsError
from parley.settings import Secret

ANSWER_BYTES_MAX = 64 * 1024
TIMEOUT_S_MAX = 5.0
RETRY_AFTER_S = 0.25
SECRET_PREFIX = "whsec_"


class GuardedAnswer(Protocol):
    """What a server answered."""

    @property
    def status(self) -> int:
        """The HTTP status; a redirect is an answer like any other."""
        ...

    @property
    def content(self) -> bytes:
        """The body."""
        ...


class Sender(Protocol):
    """Sends single requests to servers that are not trusted, as `GuardedSender` does."""

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None = None
    ) -> GuardedAnswer:
        """Send a request without following redirects, and return its answer.

        Raises:
            SendFailed: There is none.
        """
        ...


class WebhookSender:
    """Sends events to consumers.

    A connection that could not be opened is tried once more, with the same id.

    Args:
        sender: The guarded sender.
        secrets_of: Returns the secrets that sign requests to a hook.
        clock: The clock.
    """

    def __init__(
        self,
        sender: Sender,
        secrets_of: Callable[[str], Awaitable[tuple[Secret, ...]]],
        clock: Clock,
    ) -> None:
        self._sender = sender
        self._secrets_of = secrets_of
        self._clock = clock

    async def send(self, hook: Hook, dispatch_id: str, body: bytes) -> HookAnswer:
        """Send an event, and return the answer.

        Raises:
            DeliveryFailed: There is none in time.
            DatabaseUnavailable: The secret cannot be read now, which is no failure of the hook.
        """
        try:
            secrets = await self._secrets_of(hook.id)
            async with asyncio.timeout(hook.timeout_ms / 1000):
                try:
                    return await self._post(hook.url, secrets, dispatch_id, body)
                except SendFailed as failure:
                    if failure.may_have_arrived:
                        raise
                await self._clock.sleep(RETRY_AFTER_S)
                return await self._post(hook.url, secrets, dispatch_id, body)
        except TimeoutError:
            raise DeliveryFailed(f"it did not answer within {hook.timeout_ms} ms") from None
        except SendFailed as failure:
            raise DeliveryFailed(str(failure)) from failure
        except (ResourceNotFound, SecretsError) as unknown:
            raise DeliveryFailed(f"its secret cannot be read: {unknown}") from unknown

    async def _post(
        self, url: str, secrets: tuple[Secret, ...], dispatch_id: str, body: bytes
    ) -> HookAnswer:
        sent_s = str(int(self._clock.now().timestamp()))
        signatures = (signature(secret, dispatch_id, sent_s, body) for secret in secrets)
        headers = {
            "Content-Type": "application/json",
            "webhook-id": dispatch_id,
            "webhook-timestamp": sent_s,
            "webhook-signature": " ".join(signatures),
        }
        answer = await self._sender.send("POST", url, headers, body)
        if 300 <= answer.status < 400:
            raise DeliveryFailed("it redirects, which is not followed; name its address itself")
        return HookAnswer(answer.status, answer.content)


def signature(secret: Secret, dispatch_id: str, sent_s: str, body: bytes) -> str:
    """Return the signature of a request."""
    key = base64.b64decode(secret.reveal().removeprefix(SECRET_PREFIX))
    signed = b".".join((dispatch_id.encode(), sent_s.encode(), body))
    digest = hmac.new(key, signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def new_secret(token_bytes: Callable[[int], bytes]) -> Secret:
    """Return a new secret of a hook."""
    return Secret(SECRET_PREFIX + base64.b64encode(token_bytes(32)).decode())

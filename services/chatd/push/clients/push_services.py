"""Sends encrypted notifications to the push services of browsers, RFC 8030."""

import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol

import httpx2
from cryptography.hazmat.primitives.asymmetric import ec

from chatd.push.clients.encryption import CURVE, SALT_BYTES, OneTimeKeys, encrypted
from chatd.push.clients.endpoints import told
from chatd.push.clients.names import OWNER
from chatd.push.clients.vapid import VapidKey, base64url
from chatd.push.domain.delivery import Answer, no_answer, not_tried, result_of_answer
from chatd.push.domain.notification import TTL_S, Notification, payload_of
from chatd.push.domain.subscription import PushTarget
from parley.clock import Clock
from parley.egress import SendFailed

ANSWER_BYTES_MAX: Final = 16 * 1024
TIMEOUT_S_MAX: Final = 10.0
#: The length that RFC 8030 allows for a topic.
TOPIC_CHARACTERS: Final = 32

logger = logging.getLogger(__name__)


class GuardedAnswer(Protocol):
    """What a server answered."""

    @property
    def status(self) -> int:
        """The HTTP status; a redirect is an answer like any other."""
        ...

    @property
    def headers(self) -> httpx2.Headers:
        """The headers."""
        ...


class Sender(Protocol):
    """Sends single requests to servers that are not trusted, as `GuardedSender` does."""

    async def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        content: bytes | None = None,
        *,
        reads_body: bool = True,
    ) -> GuardedAnswer:
        """Send a request without following redirects, and return its answer.

        Raises:
            SendFailed: There is none.
        """
        ...


class PushServices:
    """Sends notifications.

    Args:
        sender: The guarded sender.
        key: Returns the key pair of the installation.
        contact: A `mailto:` or https URL of the operator; empty for none.
        clock: The clock.
        token_bytes: Returns random bytes.
    """

    def __init__(
        self,
        sender: Sender,
        key: Callable[[], Awaitable[VapidKey]],
        *,
        contact: str,
        clock: Clock,
        token_bytes: Callable[[int], bytes],
    ) -> None:
        self._sender = sender
        self._key = key
        self._contact = contact
        self._clock = clock
        self._token_bytes = token_bytes

    async def send(self, target: PushTarget, notification: Notification) -> Answer:
        """Send a notification to a device, and return what became of it.

        Raises:
            DatabaseUnavailable: The key pair cannot be read now.
        """
        key = await self._key()
        endpoint = target.address.endpoint
        keys = OneTimeKeys(ec.generate_private_key(CURVE), self._token_bytes(SALT_BYTES))
        headers = {
            "Authorization": key.authorization(endpoint, self._contact, self._clock.now()),
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "TTL": str(TTL_S),
            "Urgency": notification.urgency.value,
            "Topic": topic_of(notification.chat_id or target.id),
        }
        body = encrypted(payload_of(notification), target.address, keys)
        of_owner = OWNER.set(target.owner_id)
        try:
            answer = await self._sender.send("POST", endpoint, headers, body, reads_body=False)
        except SendFailed as failure:
            if isinstance(failure.__cause__, httpx2.PoolTimeout):
                return not_tried()
            why = told(failure)
            if why != str(failure):
                # The user is told less than the operator.
                logger.info("no answer of a push service: %.300s", failure)
            return no_answer(why)
        finally:
            OWNER.reset(of_owner)
        return result_of_answer(answer.status, answer.headers.get("Retry-After", ""))


def topic_of(subject: str) -> str:
    """Return the topic of a chat: a newer notification replaces one that was not delivered yet."""
    return base64url(hashlib.sha256(f"push {subject}".encode()).digest())[:TOPIC_CHARACTERS]

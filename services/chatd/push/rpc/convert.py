"""Conversion and validation of push subscriptions."""

import base64
import binascii
from collections.abc import Callable
from functools import partial
from typing import Any

import httpx2

from chatd.primitives.domain.errors import InvalidRequest, all_of
from chatd.push.clients.encryption import AUTH_BYTES, is_point
from chatd.push.domain.subscription import PushAddress, PushSubscription
from parley.api.chat.v1 import push_service_pb2 as api
from parley.egress import SendFailed

#: Raises SendFailed for an address that must not be used.
CheckUrl = Callable[[str], None]


def address_of(request: api.CreatePushSubscriptionRequest, check_url: CheckUrl) -> PushAddress:
    """Return where and how a device is reached.

    Raises:
        InvalidRequest: The endpoint must not be used, or a key is not valid.
    """
    endpoint, public_key, auth = all_of(
        (
            partial(_endpoint, request.endpoint, check_url),
            partial(_public_key, request.p256dh),
            partial(_auth, request.auth),
        )
    )
    return PushAddress(endpoint, public_key, auth)


def host_of(endpoint: str) -> str:
    """Return the host of an endpoint, which may be shown."""
    return httpx2.URL(endpoint).host


def name_of(request: api.CreatePushSubscriptionRequest) -> str:
    """Return the name of a subscription.

    Raises:
        InvalidRequest: It is empty or has control characters.
    """
    name = request.name.strip()
    if not name or not name.isprintable():
        raise InvalidRequest("name", "is empty, or has line breaks or control characters")
    return name


def subscription_to_proto(subscription: PushSubscription) -> api.PushSubscription:
    """Convert a subscription to its proto."""
    shown = api.PushSubscription(
        id=subscription.id,
        name=subscription.name,
        host=subscription.host,
        last_error=subscription.last_error,
    )
    shown.created_at.FromDatetime(subscription.created_at)
    if subscription.last_sent_at is not None:
        shown.last_sent_at.FromDatetime(subscription.last_sent_at)
    return shown


def _endpoint(text: str, check_url: CheckUrl) -> Any:
    try:
        check_url(text)
    except SendFailed as problem:
        raise InvalidRequest("endpoint", f"cannot be used: {problem}") from problem
    return text


def _public_key(text: str) -> Any:
    point = _decoded(text, "p256dh")
    if not is_point(point):
        raise InvalidRequest("p256dh", "is not an uncompressed point of P-256 of 65 bytes")
    return point


def _auth(text: str) -> Any:
    secret = _decoded(text, "auth")
    if len(secret) != AUTH_BYTES:
        raise InvalidRequest("auth", f"does not have {AUTH_BYTES} bytes")
    return secret


def _decoded(text: str, field: str) -> bytes:
    unpadded = text.rstrip("=")
    try:
        padded = unpadded + "=" * (-len(unpadded) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise InvalidRequest(field, "is not base64url") from None

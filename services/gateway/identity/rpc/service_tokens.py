"""Serves service tokens, and streams their revocations to other services."""

from collections.abc import AsyncIterator, Iterator
from datetime import datetime

import grpc
from google.protobuf.timestamp_pb2 import Timestamp

from gateway.identity.domain import RevokedSet, RevokedToken, ServiceTokenRecord
from gateway.identity.engine.revocation_feed import RevocationFeed
from gateway.identity.engine.service_tokens import NewToken, ServiceTokens
from parley.api.identity.v1 import token_pb2
from parley.api.identity.v1 import token_service_pb2 as tokens_api
from parley.api.identity.v1.token_service_pb2_grpc import (
    ServiceTokenServiceServicer,
)
from parley.clock import Clock
from parley.identity import User
from parley.rpc import current_caller

HEARTBEAT_S = 15.0
CHANGE_TOKENS_MAX = 1000


class ServiceTokenServicer(ServiceTokenServiceServicer):
    """Serves service tokens, and streams their revocations to other services."""

    def __init__(self, tokens: ServiceTokens, feed: RevocationFeed, *, clock: Clock) -> None:
        self._tokens = tokens
        self._feed = feed
        self._clock = clock

    async def IssueServiceToken(  # noqa: N802 (the name is the proto's)
        self, request: tokens_api.IssueServiceTokenRequest, context: grpc.aio.ServicerContext
    ) -> tokens_api.IssueServiceTokenResponse:
        """Issue a token; its text is in this response only."""
        asked = NewToken(
            request_id=request.request_id,
            name=request.name,
            scopes=tuple(request.scopes),
            user_id=request.user_id,
            lifetime_s=request.lifetime_s,
        )
        issued = await self._tokens.issue(calling_user(), asked)
        return tokens_api.IssueServiceTokenResponse(
            service_token=token_to_proto(issued.record), token=issued.text
        )

    async def ListServiceTokens(  # noqa: N802 (the name is the proto's)
        self, request: tokens_api.ListServiceTokensRequest, context: grpc.aio.ServicerContext
    ) -> tokens_api.ListServiceTokensResponse:
        """List tokens, newest first."""
        page = await self._tokens.page(
            page_size=request.page_size,
            page_token=request.page_token,
            user_id=request.user_id,
            include_ended=request.include_ended,
        )
        return tokens_api.ListServiceTokensResponse(
            service_tokens=map(token_to_proto, page.records), next_page_token=page.next_page_token
        )

    async def RevokeServiceToken(  # noqa: N802 (the name is the proto's)
        self, request: tokens_api.RevokeServiceTokenRequest, context: grpc.aio.ServicerContext
    ) -> tokens_api.RevokeServiceTokenResponse:
        """Revoke a token permanently."""
        record = await self._tokens.revoke(calling_user(), request.token_id)
        return tokens_api.RevokeServiceTokenResponse(service_token=token_to_proto(record))

    async def WatchRevocations(  # noqa: N802 (the name is the proto's)
        self, request: tokens_api.WatchRevocationsRequest, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[tokens_api.WatchRevocationsResponse]:
        """Send the revoked set, then additions to it, and heartbeats."""
        known = await self._feed.current()
        yield _snapshot(known)
        while True:
            newer = await self._feed.newer_than(known.version, within_s=HEARTBEAT_S)
            if newer is None:
                yield _heartbeat(known.version, self._clock.now())
                continue
            for change in _changes(known.version, newer):
                yield change
            known = newer


def token_to_proto(record: ServiceTokenRecord) -> token_pb2.ServiceToken:
    """Convert a token to its proto."""
    return token_pb2.ServiceToken(
        token_id=record.id,
        name=record.name,
        user_id=record.user_id,
        scopes=record.scopes,
        issued_by_user_id=record.issued_by_user_id,
        issued_at=timestamp(record.issued_at),
        expires_at=timestamp(record.expires_at),
        revoked_at=None if record.revoked_at is None else timestamp(record.revoked_at),
        signing_key_retired=record.is_key_retired,
    )


def calling_user() -> User:
    """Return the user on whose behalf the call is made."""
    user = current_caller().user
    # The method's access rule accepts only calls for users.
    assert user is not None
    return user


def _snapshot(known: RevokedSet) -> tokens_api.WatchRevocationsResponse:
    snapshot = tokens_api.RevocationSnapshot(
        version=known.version, revoked_tokens=map(_revoked_to_proto, known.tokens)
    )
    return tokens_api.WatchRevocationsResponse(snapshot=snapshot)


def _changes(version: int, newer: RevokedSet) -> Iterator[tokens_api.WatchRevocationsResponse]:
    """Yield the changes from `version` to `newer`, in messages that each have their own version."""
    added = [token for token in newer.tokens if token.revocation > version]
    for start in range(0, len(added), CHANGE_TOKENS_MAX):
        piece = added[start : start + CHANGE_TOKENS_MAX]
        is_last = start + CHANGE_TOKENS_MAX >= len(added)
        reached = newer.version if is_last else piece[-1].revocation
        change = tokens_api.RevocationChange(
            previous_version=version,
            version=reached,
            revoked_tokens=map(_revoked_to_proto, piece),
        )
        yield tokens_api.WatchRevocationsResponse(change=change)
        version = reached


def _heartbeat(version: int, now: datetime) -> tokens_api.WatchRevocationsResponse:
    heartbeat = tokens_api.RevocationHeartbeat(version=version, sent_at=timestamp(now))
    return tokens_api.WatchRevocationsResponse(heartbeat=heartbeat)


def _revoked_to_proto(token: RevokedToken) -> token_pb2.RevokedToken:
    return token_pb2.RevokedToken(token_id=token.id, expires_at=timestamp(token.expires_at))


def timestamp(moment: datetime) -> Timestamp:
    """Convert a datetime to a proto timestamp."""
    timestamp = Timestamp()
    timestamp.FromDatetime(moment)
    return timestamp

"""Serves API keys to their users and to administrators."""

from datetime import datetime

import grpc
from google.protobuf.timestamp_pb2 import Timestamp

from gateway.identity.domain import ApiKeyRecord
from gateway.identity.engine.api_keys import ApiKeys, NewApiKey
from gateway.identity.rpc.service_tokens import calling_user, timestamp
from parley.api.identity.v1 import api_key_service_pb2 as api
from parley.api.identity.v1 import session_pb2
from parley.api.identity.v1.api_key_service_pb2_grpc import ApiKeyServiceServicer


class ApiKeyServicer(ApiKeyServiceServicer):
    """Serves API keys."""

    def __init__(self, keys: ApiKeys) -> None:
        self._keys = keys

    async def CreateApiKey(  # noqa: N802 (the name is the proto's)
        self, request: api.CreateApiKeyRequest, context: grpc.aio.ServicerContext
    ) -> api.CreateApiKeyResponse:
        """Make a key; its text is in this response only."""
        asked = NewApiKey(
            request_id=request.request_id,
            user_id=request.user_id,
            name=request.name,
            scopes=tuple(request.scopes),
            lifetime_s=request.lifetime_s,
        )
        made = await self._keys.create(calling_user(), asked)
        return api.CreateApiKeyResponse(api_key=_key_to_proto(made.record), key=made.text)

    async def ListApiKeys(  # noqa: N802 (the name is the proto's)
        self, request: api.ListApiKeysRequest, context: grpc.aio.ServicerContext
    ) -> api.ListApiKeysResponse:
        """List the keys of a user."""
        found = await self._keys.list(
            calling_user(), request.user_id, include_ended=request.include_ended
        )
        return api.ListApiKeysResponse(api_keys=map(_key_to_proto, found))

    async def RevokeApiKey(  # noqa: N802 (the name is the proto's)
        self, request: api.RevokeApiKeyRequest, context: grpc.aio.ServicerContext
    ) -> api.RevokeApiKeyResponse:
        """Revoke a key permanently."""
        revoked = await self._keys.revoke(calling_user(), request.user_id, request.api_key_id)
        return api.RevokeApiKeyResponse(api_key=_key_to_proto(revoked))


def _key_to_proto(record: ApiKeyRecord) -> session_pb2.ApiKey:
    return session_pb2.ApiKey(
        api_key_id=record.id,
        user_id=record.user_id,
        name=record.name,
        scopes=record.scopes,
        created_at=timestamp(record.created_at),
        expires_at=_optional(record.expires_at),
        last_used_at=_optional(record.last_used_at),
        revoked_at=_optional(record.revoked_at),
        is_from_setting=record.is_from_setting,
    )


def _optional(time: datetime | None) -> Timestamp | None:
    return None if time is None else timestamp(time)

"""Calls to a test's gateway about users and groups, for its owner, for others, or as chatd."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from parley.api.identity.v1 import access_pb2
from parley.identity import Role, ServiceName, User, UserId
from parley.rpc import acting_for, connect, problem_of
from support.gateway.stack import GatewayStack

ASKED: dict[str, Any] = {"request_id": "r1", "login": "ada", "role": access_pb2.ROLE_MEMBER}


@asynccontextmanager
async def channel_to(stack: GatewayStack, *, as_user: User | None) -> AsyncIterator[Any]:
    """Connect as chatd for nobody, or as the gateway for a user."""
    channel = connect(
        stack.gateway.grpc.address,
        audience=ServiceName.GATEWAY,
        signer=stack.chatd_signer if as_user is None else stack.gateway_signer,
        telemetry=stack.telemetry.telemetry,
    )
    async with asyncio.timeout(10), channel:
        if as_user is None:
            yield channel
        else:
            with acting_for(as_user):
                yield channel


async def owner_of(stack: GatewayStack) -> User:
    """Return the owner of the installation."""
    me = (await stack.owner.request("GET", "/api/v1/me")).json()
    return User(UserId(me["id"]), Role.OWNER)


async def refused(call: Any) -> str:
    """Return the reason for which a call is refused."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return problem_of(caught.value).reason

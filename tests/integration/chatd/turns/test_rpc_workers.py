"""Ending workers over gRPC: only for holders of chatd's key."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from datetime import timedelta
from pathlib import Path

import grpc
import pytest

from chatd.errors import DOMAIN, ERRORS
from chatd.primitives.domain.ids import WorkerId
from chatd.workers.engine.endings import WorkerEndings
from chatd.workers.rpc.servicer import WorkerServicer
from parley.api.chat.v1.worker_service_pb2 import EndWorkerRequest, EndWorkerResponse
from parley.api.chat.v1.worker_service_pb2_grpc import WorkerServiceStub
from parley.clock import FakeClock, SystemClock
from parley.identity import (
    Guard,
    InMemoryRevocations,
    Role,
    ServiceName,
    Signer,
    SigningKey,
    Trust,
    TrustFile,
    User,
    UserId,
)
from parley.rpc import Address, Registration, acting_for, connect, problem_of, serve
from parley.telemetry import InMemoryTelemetry
from support.chatd.chats.in_memory_chats import InMemoryChats
from support.chatd.turns.in_memory_workers import InMemoryWorkers

WORKER = WorkerId("00000000-0000-0000-0000-0000000000aa")
REQUEST = EndWorkerRequest(request_id="r", worker_id=WORKER)
ANN = User(UserId("00000000-0000-0000-0000-00000000000a"), Role.OWNER)


@asynccontextmanager
async def served_workers(
    directory: Path, caller: ServiceName
) -> AsyncIterator[tuple[WorkerServiceStub, InMemoryWorkers, Signer]]:
    """Serve the workers of one chatd; yield a stub that is signed by a service."""
    clock, key, trust_file = SystemClock(), SigningKey.generate(), directory / "trust.json"
    TrustFile(trust_file).add_key(caller, key)
    guard = Guard(
        ServiceName.CHATD, Trust(trust_file, clock), InMemoryRevocations(()), clock, False
    )
    workers = InMemoryWorkers(InMemoryChats(), FakeClock())
    await workers.register(WORKER, "unix:/nowhere", 15.0, is_quarantine=False)
    telemetry, signer = InMemoryTelemetry("chatd").telemetry, Signer(caller, key, clock)
    async with serve(
        Address.parse(f"unix:{directory}/chatd.sock"),
        [Registration.of(WorkerServicer(WorkerEndings(workers, lambda state: None)))],
        guard=guard,
        errors=ERRORS,
        domain=DOMAIN,
        telemetry=telemetry,
    ) as server:
        channel = connect(
            server.address, audience=ServiceName.CHATD, signer=signer, telemetry=telemetry
        )
        async with channel:
            yield WorkerServiceStub(channel), workers, signer


async def test_whoever_has_the_key_of_chatd_ends_a_worker(tmp_path: Path) -> None:
    async with served_workers(tmp_path, ServiceName.CHATD) as (stub, workers, _):
        assert await stub.EndWorker(REQUEST) == EndWorkerResponse(released_chats=0)
        assert workers.rows[WORKER].has_ended


@pytest.mark.parametrize(
    ("caller", "user"),
    [
        (ServiceName.GATEWAY, None),
        (ServiceName.GATEWAY, ANN),
        (ServiceName.TOOLRUNNER, None),
        (ServiceName.MCPGATEWAY, None),
        (ServiceName.CHATD, ANN),
    ],
)
async def test_no_other_service_and_no_user_ends_a_worker(
    tmp_path: Path, caller: ServiceName, user: User | None
) -> None:
    async with served_workers(tmp_path, caller) as (stub, workers, _):
        caller_context = nullcontext() if user is None else acting_for(user)
        with caller_context, pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.EndWorker(REQUEST)
        assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
        assert problem_of(refused.value).reason
        assert not workers.rows[WORKER].has_ended


async def test_a_service_token_ends_no_worker(tmp_path: Path) -> None:
    async with served_workers(tmp_path, ServiceName.GATEWAY) as (_, workers, signer):
        expires_at = SystemClock().now() + timedelta(hours=1)
        token = signer.service_token("t1", "nightly", ANN, ("chat:read", "chat:write"), expires_at)
        address = f"unix:{tmp_path}/chatd.sock"
        async with grpc.aio.insecure_channel(address) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await WorkerServiceStub(channel).EndWorker(
                    REQUEST, metadata=(("authorization", f"Bearer {token}"),)
                )
        assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
        assert not workers.rows[WORKER].has_ended

"""The gRPC side of a running stack: who is there, who is let in, and who is not."""

import asyncio
import subprocess
import sys
from pathlib import Path

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import (
    reflection_pb2,
    reflection_pb2_grpc,
)

from support.host.conditions import until
from support.rpc.api_services import every_service
from support.stack.local_stack import SHELL_RESULT, LocalStack

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent.parent
OURS = ("gateway", "chatd", "toolrunner", "mcpgateway")
OPEN = {"grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"}
ANSWER_S_MAX = 30.0


async def listed(channel: grpc.aio.Channel) -> set[str]:
    """Return the services that reflection lists, as grpcurl would."""
    stub = reflection_pb2_grpc.ServerReflectionStub(channel)
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    async for response in stub.ServerReflectionInfo(iter([request]), timeout=ANSWER_S_MAX):
        return {service.name for service in response.list_services_response.service}
    raise AssertionError("reflection gave no answer")


def kind_of(method: MethodDescriptor) -> str:
    """Return the name of the channel's function that calls `method`."""
    asked = "stream" if method.client_streaming else "unary"
    return f"{asked}_{'stream' if method.server_streaming else 'unary'}"


async def refusal(
    channel: grpc.aio.Channel, method: MethodDescriptor, authorization: str | None
) -> grpc.StatusCode:
    """Call a method with an empty request and return how that ended."""
    path = f"/{method.containing_service.full_name}/{method.name}"
    metadata = () if authorization is None else (("authorization", authorization),)
    # A stream that is opened and stays empty: nobody may have to send anything to be refused.
    asked = () if method.client_streaming else (b"",)
    call = getattr(channel, kind_of(method))(path)(*asked, timeout=ANSWER_S_MAX, metadata=metadata)
    code: grpc.StatusCode = await call.code()
    return code


@pytest.mark.parametrize("service", OURS)
async def test_reflection_lists_its_services_and_each_of_them_is_healthy(
    stack: LocalStack, service: str
) -> None:
    for address in stack.endpoints()["grpc"][service]:
        async with grpc.aio.insecure_channel(address) as channel:
            found = await listed(channel)
            assert found > OPEN
            assert all(name.startswith("parley.api.") for name in found - OPEN)
            health = health_pb2_grpc.HealthStub(channel)
            for name in ("", *sorted(found - OPEN)):
                request = health_pb2.HealthCheckRequest(service=name)
                answer = await health.Check(request, timeout=ANSWER_S_MAX)
                assert answer.status == health_pb2.HealthCheckResponse.SERVING


@pytest.mark.parametrize(
    "authorization", [None, "Bearer eyJhbGciOiJub25lIn0.e30.", "Basic cGFybGV5"]
)
@pytest.mark.parametrize("service", OURS)
async def test_nobody_without_a_token_is_let_in_anywhere(
    stack: LocalStack, service: str, authorization: str | None
) -> None:
    address = stack.endpoints()["grpc"][service][0]
    async with asyncio.timeout(120), grpc.aio.insecure_channel(address) as channel:
        served = await listed(channel) - OPEN
        refusals = {
            method.full_name: await refusal(channel, method, authorization)
            for each in every_service()
            if each.full_name in served
            for method in each.methods
        }
    assert refusals
    assert refusals == dict.fromkeys(refusals, grpc.StatusCode.UNAUTHENTICATED)


@pytest.mark.parametrize("service", OURS)
async def test_what_a_service_does_not_serve_is_not_there(stack: LocalStack, service: str) -> None:
    address = stack.endpoints()["grpc"][service][0]
    async with asyncio.timeout(120), grpc.aio.insecure_channel(address) as channel:
        served = await listed(channel)
        answers = {
            method.full_name: await refusal(channel, method, None)
            for each in every_service()
            if each.full_name not in served
            for method in each.methods
        }
    assert answers == dict.fromkeys(answers, grpc.StatusCode.UNIMPLEMENTED)


def ask(stack: LocalStack, token_file: Path) -> "subprocess.CompletedProcess[str]":
    """Run the example caller."""
    addresses = stack.endpoints()["grpc"]["chatd"]
    program = ROOT / "examples" / "internal_caller.py"
    return subprocess.run(
        [sys.executable, program, "--token-file", token_file, *addresses, "hello from a program"],
        env=stack.variables(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_example_caller_works_until_its_token_is_revoked(
    stack: LocalStack, tmp_path: Path
) -> None:
    issued = stack.parley("token", "issue", "e2e", "--scope", "chat:read", "--scope", "chat:write")
    assert issued.returncode == 0, issued.stderr
    token_file = tmp_path / "token"
    token_file.write_text(issued.stdout)
    token_id = issued.stderr.split()[1].rstrip(",")

    answered = ask(stack, token_file)
    assert answered.returncode == 0, answered.stderr
    assert answered.stdout.count(SHELL_RESULT) == 1

    assert stack.parley("token", "revoke", token_id).returncode == 0
    until(lambda: ask(stack, token_file).returncode == 1, "the revocation", within_s=60)
    assert "revoked" in ask(stack, token_file).stderr

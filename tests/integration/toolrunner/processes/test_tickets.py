"""Attachments with tickets at a real node: each is its user's, its process's, and good once."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import grpc
import pytest

from parley.api.workspace.v1 import process_pb2
from parley.api.workspace.v1 import process_service_pb2 as api
from parley.api.workspace.v1.process_service_pb2_grpc import ProcessServiceStub
from parley.clock import FakeClock
from parley.identity import (
    Role,
    ServiceName,
    Signer,
    SigningKey,
    TicketIssuer,
    TrustFile,
    User,
    UserId,
)
from parley.rpc import acting_for, connect, problem_of
from parley.telemetry import InMemoryTelemetry
from support.toolrunner.node import Client, House, connected, node

ALICE = User(UserId("00000000-0000-0000-0000-00000000000a"), Role.MEMBER)
BOB = User(UserId("00000000-0000-0000-0000-00000000000b"), Role.MEMBER)
SCREEN = process_pb2.TerminalSize(rows=24, columns=80)
BAD_TICKET = (grpc.StatusCode.PERMISSION_DENIED, "BAD_TICKET")

Answer = api.AttachResponse | tuple[grpc.StatusCode, str]


class Gateway:
    """A gateway that attaches for users, and the chatd that would give it tickets."""

    def __init__(self, house: House, client: Client, channel: grpc.aio.Channel) -> None:
        self.house = house
        self.client = client
        self.office = TicketIssuer(house.key, house.clock)
        self._stub = ProcessServiceStub(channel)
        self._ids = 0

    async def ticket(self, process_id: str, *, is_view_only: bool = False) -> str:
        self._ids += 1
        generation = await self.client.generation()
        return self.signed(process_id, generation, is_view_only=is_view_only)

    def signed(
        self,
        process_id: str,
        node: str,
        *,
        office: TicketIssuer | None = None,
        is_view_only: bool = False,
    ) -> str:
        text, _ = (office or self.office).issue(
            f"ticket-{self._ids}",
            user_id=ALICE.id,
            workspace_id=self.client.context.workspace_id,
            process_id=process_id,
            node=node,
            is_view_only=is_view_only,
        )
        return text

    async def answers(
        self, opening: api.AttachOpen, *typed: bytes, user: User = ALICE, count: int = 1
    ) -> list[Answer]:
        """Return the first answers to an opening, the last of them a refusal if there is one."""
        with acting_for(user):
            call: Any = self._stub.Attach(timeout=20)
        found: list[Answer] = []
        try:
            await call.write(api.AttachRequest(open=opening))
            found.append(await call.read())
            for each in typed:
                await call.write(api.AttachRequest(stdin=each))
            while len(found) < count:
                found.append(await call.read())
        except grpc.aio.AioRpcError as error:
            problem = problem_of(error)
            found.append((problem.status, problem.reason))
        finally:
            call.cancel()
        return found


@pytest.fixture
async def gateway(house: House) -> AsyncIterator[Gateway]:
    key = SigningKey.generate()
    TrustFile(house.directory / "trust.json").add_key(ServiceName.GATEWAY, key)
    channel = connect(
        house.address,
        audience=ServiceName.TOOLRUNNER,
        signer=Signer(ServiceName.GATEWAY, key, house.clock),
        telemetry=InMemoryTelemetry().telemetry,
    )
    async with node(house), connected(house) as client, channel:
        yield Gateway(house, client, channel)


async def started(gateway: Gateway) -> str:
    return (await gateway.client.start("exec cat", terminal=SCREEN)).process.process_id


async def test_a_ticket_opens_the_terminal_of_its_process_once(gateway: Gateway) -> None:
    process_id = await started(gateway)
    ticket = await gateway.ticket(process_id)
    opened, shown = await gateway.answers(api.AttachOpen(ticket=ticket), b"hi\n", count=2)
    assert isinstance(opened, api.AttachResponse)
    assert isinstance(shown, api.AttachResponse)
    assert (opened.opened.process.process_id, opened.opened.view_only) == (process_id, False)
    assert shown.chunk.data.startswith(b"hi")
    assert await gateway.answers(api.AttachOpen(ticket=ticket)) == [BAD_TICKET]


async def test_a_ticket_is_its_users_its_processs_and_its_nodes(gateway: Gateway) -> None:
    process_id, other_id = await started(gateway), await started(gateway)
    ticket = await gateway.ticket(process_id)
    elsewhere = gateway.signed(process_id, "another-generation")
    assert await gateway.answers(api.AttachOpen(ticket=ticket), user=BOB) == [BAD_TICKET]
    named = api.AttachOpen(ticket=ticket, process_id=other_id)
    assert await gateway.answers(named) == [BAD_TICKET]
    assert await gateway.answers(api.AttachOpen(ticket=elsewhere)) == [BAD_TICKET]
    assert await gateway.answers(api.AttachOpen(ticket="forged")) == [BAD_TICKET]
    without = api.AttachOpen(context=gateway.client.context, process_id=process_id)
    assert await gateway.answers(without) == [BAD_TICKET]
    # None of these spent it.
    (opened,) = await gateway.answers(api.AttachOpen(ticket=ticket, process_id=process_id))
    assert isinstance(opened, api.AttachResponse)


async def test_a_ticket_expires_and_one_from_before_the_start_is_refused(
    gateway: Gateway,
) -> None:
    process_id = await started(gateway)
    generation = await gateway.client.generation()
    for age_s in (90, 30):
        past = FakeClock(gateway.house.clock.now() - timedelta(seconds=age_s))
        office = TicketIssuer(gateway.house.key, past)
        old = gateway.signed(process_id, generation, office=office)
        assert await gateway.answers(api.AttachOpen(ticket=old)) == [BAD_TICKET]


async def test_who_only_looks_sees_everything_and_types_nothing(gateway: Gateway) -> None:
    process_id = await started(gateway)
    await gateway.client.write(process_id, b"seen\n")
    ticket = await gateway.ticket(process_id, is_view_only=True)
    size = process_pb2.TerminalSize(rows=1, columns=1)
    answers = await gateway.answers(api.AttachOpen(ticket=ticket, size=size), b"unseen\n", count=10)
    opened, refusal = answers[0], answers[-1]
    assert isinstance(opened, api.AttachResponse)
    assert opened.opened.view_only
    assert refusal == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST")
    output = (await gateway.client.wait(process_id, process_pb2.WAIT_UNTIL_SNAPSHOT)).output
    assert "seen" in output.text
    assert "unseen" not in output.text

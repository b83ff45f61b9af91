"""A node that asks chatd for the secrets of its workspaces, at each use, over sockets."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Literal

import grpc
import pytest

from parley.api.workspace.v1 import host_service_pb2 as host_api
from parley.api.workspace.v1 import node_service_pb2 as api
from parley.api.workspace.v1 import process_pb2, secret_pb2
from parley.rpc import Address, Channels
from support.toolrunner.fake_node_registry import FakeNodeRegistry, node_registry
from support.toolrunner.hosted_workspaces import Placer, scratch
from support.toolrunner.node import House, connected, node, toolrunner
from toolrunner.egress import SecretUnavailable, SecretUse, SecretValue
from toolrunner.primitives.domain import WorkspaceId
from toolrunner.workspaces.domain.placement import HostState, Placement
from toolrunner.workspaces.domain.spec import Scratch, WorkspaceSpec
from toolrunner.workspaces.node.registration import Registered
from toolrunner.workspaces.node.secret_client import GrpcSecrets

WORKSPACE = WorkspaceId("00000000-0000-0000-0000-0000000000a1")
NODE = "00000000-0000-0000-0000-0000000000f1"
USE = SecretUse(WORKSPACE, "deploy", "github.com:443", "GET /x")
VALUE = b"the-value-of-the-owner"


class AwaitedEvent(asyncio.Event):
    """An event that tells when it is waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.awaited = asyncio.Event()

    async def wait(self) -> Literal[True]:
        self.awaited.set()
        return await super().wait()


@dataclass
class Known:
    """How the node is known."""

    registered: Registered | None
    known: AwaitedEvent = field(default_factory=AwaitedEvent)


@pytest.fixture
async def registries(house: House) -> AsyncIterator[list[tuple[FakeNodeRegistry, Address]]]:
    """Two replicas of chatd."""
    (house.directory / "other").mkdir()
    async with (
        node_registry(house.directory) as one,
        node_registry(house.directory / "other") as other,
    ):
        yield [one, other]


@dataclass
class Asked:
    """A source of secrets over two replicas, and the values it wants hidden."""

    secrets: GrpcSecrets
    hidden: list[str]
    known: Known


@pytest.fixture
async def asked(
    house: House, registries: list[tuple[FakeNodeRegistry, Address]]
) -> AsyncIterator[Asked]:
    channels = Channels(
        [address for _, address in registries],
        lambda address: grpc.aio.insecure_channel(address.target),
    )
    now, hidden = house.clock.now(), list[str]()
    placement = Placement(WORKSPACE, 7, "owner", HostState.READY, WorkspaceSpec(Scratch()), now)
    known = Known(Registered(3, 15.0))
    secrets = GrpcSecrets(
        channels, known, NODE, {WORKSPACE: placement}, lambda: "use-1", hidden.append, known_s=0.1
    )
    yield Asked(secrets, hidden, known)
    for channel in channels.all():
        await channel.close()


async def test_a_value_is_asked_for_with_all_that_chatd_judges_by(
    asked: Asked, registries: list[tuple[FakeNodeRegistry, Address]]
) -> None:
    for registry, _ in registries:
        registry.secrets["deploy"] = VALUE
    value = await asked.secrets.use(USE)
    assert value == SecretValue("", VALUE)
    assert asked.hidden == [VALUE.decode()]
    uses = [use for registry, _ in registries for use in registry.uses]
    assert uses == [
        api.UseSecretRequest(
            request_id="use-1",
            node_id=NODE,
            registration_epoch=3,
            workspace_id=WORKSPACE,
            epoch=7,
            secret_name="deploy",
            host="github.com:443",
            purpose="GET /x",
        )
    ]


async def test_another_replica_is_asked_when_one_cannot_answer(
    asked: Asked, registries: list[tuple[FakeNodeRegistry, Address]]
) -> None:
    (first, _), (second, _) = registries
    first.outages = 10
    second.secrets["deploy"] = VALUE
    assert (await asked.secrets.use(USE)).value == VALUE
    second.outages = 10
    with pytest.raises(SecretUnavailable, match="DATABASE_UNAVAILABLE"):
        await asked.secrets.use(USE)


async def test_a_refusal_is_final(
    asked: Asked, registries: list[tuple[FakeNodeRegistry, Address]]
) -> None:
    with pytest.raises(SecretUnavailable, match="not_granted"):
        await asked.secrets.use(USE)
    assert sum(len(registry.uses) for registry, _ in registries) == 1


async def test_a_node_that_is_not_known_asks_nobody(
    asked: Asked, registries: list[tuple[FakeNodeRegistry, Address]]
) -> None:
    asked.known.registered = None
    with pytest.raises(SecretUnavailable, match="not known to chatd"):
        await asked.secrets.use(USE)
    assert [registry.uses for registry, _ in registries] == [[], []]


async def test_a_node_that_is_about_to_be_known_is_waited_for(
    asked: Asked, registries: list[tuple[FakeNodeRegistry, Address]]
) -> None:
    for registry, _ in registries:
        registry.secrets["deploy"] = VALUE
    registered, asked.known.registered = asked.known.registered, None
    secrets = replace(asked.secrets, known_s=20.0)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        using = tasks.create_task(secrets.use(USE))
        await asked.known.known.awaited.wait()
        asked.known.registered = registered
        asked.known.known.set()
    assert using.result().value == VALUE


def with_variable() -> host_api.WorkspaceSpec:
    """Return a workspace whose processes get a secret as a variable."""
    spec = scratch()
    grant = secret_pb2.SecretGrant(
        name="deploy-key",
        delivery=secret_pb2.SECRET_DELIVERY_ENVIRONMENT,
        variable="DEPLOY_KEY",
    )
    spec.secrets.append(grant)
    return spec


async def test_a_variable_reaches_the_processes_of_its_workspace_and_each_is_on_record(
    house: House, registries: list[tuple[FakeNodeRegistry, Address]]
) -> None:
    registry, address = registries[0]
    registry.secrets["deploy-key"] = VALUE
    house.settings["TOOLRUNNER_CHATD"] = str(address)
    async with node(house), connected(house) as client:
        placer = Placer(client, Path(house.data))
        await registry.until(lambda: bool(registry.heartbeats))
        placer.enter(await placer.ready(with_variable()))
        told = await client.run('echo "$DEPLOY_KEY"; printf %s "$DEPLOY_KEY" | sha256sum')
        del registry.secrets["deploy-key"]
        refused = (await client.start("touch ran")).process
        placer.enter(await placer.ready(scratch()))
        other = await client.run('printf %s "${DEPLOY_KEY-none}"')

    # The process has the value, and its output does not show it.
    assert told.output.text == f"{'*' * len(VALUE)}\n{sha256(VALUE).hexdigest()}  -\n"
    assert other.output.text == "none"
    assert [(use.secret_name, use.host, use.purpose) for use in registry.uses] == [
        ("deploy-key", "", f"process {told.process.process_id}"),
        ("deploy-key", "", f"process {refused.process_id}"),
    ]
    assert refused.state == process_pb2.PROCESS_STATE_START_FAILED
    assert "the secret 'deploy-key' cannot be used" in refused.start_error


PRINTS_LATER = 'while ! [ -e go ]; do sleep 0.02; done; echo "$DEPLOY_KEY"; touch printed'


# More than one call of the client repeats by itself.
@pytest.mark.parametrize("outages", [0, 6])
@pytest.mark.parametrize("command", [PRINTS_LATER, f"({PRINTS_LATER}) &"])
async def test_secrets_are_masked_again_after_the_node_was_killed(
    house: House,
    registries: list[tuple[FakeNodeRegistry, Address]],
    command: str,
    outages: int,
) -> None:
    registry, address = registries[0]
    registry.secrets["deploy-key"] = VALUE
    house.settings["TOOLRUNNER_CHATD"] = str(address)
    async with toolrunner(house) as process, connected(house) as before:
        placer = Placer(before, Path(house.data))
        await registry.until(lambda: bool(registry.heartbeats))
        placer.enter(await placer.ready(with_variable()))
        process_id = (await before.start(command)).process.process_id
        if command != PRINTS_LATER:
            # Only a descendant is left, which has the output open.
            await before.wait(process_id)
        process.kill()
        await process.wait()
    registry.uses.clear()
    registry.outages = outages
    async with toolrunner(house), connected(house) as client:
        client.stands_for(before)
        await registry.until(lambda: bool(registry.uses))
        await client.run("touch go; while ! [ -e printed ]; do sleep 0.02; done")
        printed = (await client.wait(process_id)).output.text

    assert registry.uses[0].purpose == f"process {process_id}"
    assert printed == f"{'*' * len(VALUE)}\n"

"""A node and the chatd it registers with, over sockets."""

from collections.abc import AsyncIterator

import grpc
import pytest

from parley.api.workspace.v1 import file_service_pb2, node_pb2, process_service_pb2, workspace_pb2
from parley.api.workspace.v1 import node_service_pb2 as api
from support.toolrunner.fake_node_registry import FakeNodeRegistry, node_registry
from support.toolrunner.hosted_workspaces import Placer
from support.toolrunner.node import House, connected, node, reason_of


@pytest.fixture
async def registry(house: House) -> AsyncIterator[FakeNodeRegistry]:
    async with node_registry(house.directory) as (registry, address):
        house.settings["TOOLRUNNER_CHATD"] = str(address)
        house.settings["TOOLRUNNER_NAME"] = "one"
        house.settings["TOOLRUNNER_LABELS"] = "zone=a"
        house.settings["TOOLRUNNER_LEAVES_AT_STOP"] = "true"
        yield registry


def told(registry: FakeNodeRegistry, workspace_id: str) -> list[str]:
    """Return the states of a workspace as they were told, each once."""
    name = workspace_pb2.WorkspaceState.Name
    states = [
        name(each.state).removeprefix("WORKSPACE_STATE_").lower()
        for beat in registry.heartbeats
        for each in beat.workspaces
        if each.workspace_id == workspace_id
    ]
    return [state for at, state in enumerate(states) if at == 0 or states[at - 1] != state]


def order(
    workspace_id: str, instruction: "api.WorkspaceInstruction.ValueType"
) -> api.WorkspaceOrder:
    return api.WorkspaceOrder(workspace_id=workspace_id, epoch=1, instruction=instruction)


async def test_a_node_is_known_tells_what_changes_obeys_and_leaves(
    house: House, registry: FakeNodeRegistry
) -> None:
    async with node(house), connected(house) as client:
        placer = Placer(client, house.data)
        await registry.until(lambda: bool(registry.heartbeats))
        known = registry.registrations[0].node
        assert (known.name, known.address, dict(known.labels)) == (
            "one",
            str(house.address),
            {"zone": "a"},
        )
        assert known.journal_generation == await client.generation()
        workspace_id = await placer.ready()
        await registry.until(lambda: "ready" in told(registry, workspace_id))
        instruction = api.WORKSPACE_INSTRUCTION_STOP
        registry.orders = [
            api.WorkspaceOrder(workspace_id=workspace_id, epoch=1, instruction=instruction)
        ]
        await registry.until(lambda: "stopped" in told(registry, workspace_id))
        instruction = api.WORKSPACE_INSTRUCTION_REMOVE
        registry.orders = [
            api.WorkspaceOrder(workspace_id=workspace_id, epoch=1, instruction=instruction)
        ]
        await registry.until(lambda: "deleted" in told(registry, workspace_id))
        assert not placer.root(workspace_id).exists()
    [left] = registry.drains
    assert (left.node_id, left.leave) == (known.node_id, True)


async def test_a_node_that_was_forgotten_or_restarted_registers_with_all_it_hosts(
    house: House, registry: FakeNodeRegistry
) -> None:
    async with node(house), connected(house) as client:
        workspace_id = await Placer(client, house.data).ready()
        await registry.until(lambda: bool(registry.heartbeats))
        registry.is_forgetful = True
        await registry.until(lambda: len(registry.registrations) == 2)
    async with node(house):
        await registry.until(lambda: len(registry.registrations) == 3)
    first, *again = registry.registrations
    assert {each.node.node_id for each in again} == {first.node.node_id}
    hosted = [[(each.workspace_id, each.epoch) for each in one.workspaces] for one in again]
    assert hosted == [[(workspace_id, 1)], [(workspace_id, 1)]]
    assert registry.heartbeats[-1].load != node_pb2.NodeLoad()


async def test_a_node_that_chatd_knows_makes_nothing_that_nobody_placed(
    house: House, registry: FakeNodeRegistry
) -> None:
    async with node(house), connected(house) as client:
        unplaced = client.context.workspace_id
        missing = (grpc.StatusCode.NOT_FOUND, "WORKSPACE_NOT_FOUND")
        assert await reason_of(client.run("true")) == missing
        reading = file_service_pb2.ReadFileRequest(context=client.context, path="a")
        assert await reason_of(client.files.ReadFile(reading)) == missing
        # Who looks at processes sees that there are none.
        context = client.context
        listed = await client.processes.ListProcesses(
            process_service_pb2.ListProcessesRequest(context=context)
        )
        assert list(listed.processes) == []
        assert not (house.data / "workspaces" / unplaced).exists()
        placer = Placer(client, house.data)
        placer.enter(await placer.ready())
        assert (await client.run("echo here")).output.text == "here\n"

"""Nodes over gRPC: they register, tell what they host, are lost and come back."""

from chatd.workspaces.domain.commands import MarkNodeLost, Stop
from chatd.workspaces.domain.workspace import State, StopReason
from parley.api.workspace.v1 import node_pb2, workspace_pb2
from parley.api.workspace.v1 import node_service_pb2 as nodes_api
from parley.api.workspace.v1 import workspace_service_pb2 as api
from support.chatd.chats.chat_people import Person
from support.chatd.chats.served_chats import ServedChats
from support.chatd.workspaces.catalogue_calls import NODE_ID, READY, ReportingNode, create, hosted
from support.chatd.workspaces.served_catalogue import Catalogue


async def test_a_node_registers_hosts_is_lost_and_comes_back_with_what_it_has(
    served: ServedChats, catalogue: Catalogue, admin: Person
) -> None:
    reporting = ReportingNode(served, served.ann.nodes)
    first = await reporting.register()
    assert (first.registration_epoch, first.heartbeat_interval_ms, first.lost_after_ms) == (
        1,
        10_000,
        45_000,
    )
    assert (await served.ann.refusal(nodes_api.ListNodesRequest())).reason == "ROLE_NOT_ALLOWED"
    made = (await create(served.ann)).workspace
    await catalogue.drive()
    assert (await catalogue.store.get(made.workspace_id)).node_id == NODE_ID
    usage = workspace_pb2.WorkspaceUsage(disk_bytes=7)
    await reporting.heartbeat(1, hosted(made.workspace_id, READY, processes=1, usage=usage))
    busy = await catalogue.store.get(made.workspace_id)
    assert busy.usage is not None
    assert (busy.state, busy.usage.disk_bytes) == (State.BUSY, 7)

    silent = "UPDATE chat.nodes SET last_seen_at = now() - interval '1 min'"
    await served.pool.execute(silent)
    for each in await catalogue.nodes.lose():
        for there in await catalogue.store.on_node(each.id):
            await catalogue.store.apply(there.workspace.id, MarkNodeLost(each.id))
    lost = (await served.ann.ask(api.GetWorkspaceRequest(workspace_id=made.workspace_id))).workspace
    assert lost.failure.kind == workspace_pb2.WORKSPACE_FAILURE_KIND_NODE_LOST
    (shown,) = (await admin.ask(nodes_api.ListNodesRequest())).nodes
    assert (shown.state, shown.sandbox.summary) == (node_pb2.NODE_STATE_LOST, "good")

    again = await reporting.register(hosted(made.workspace_id, READY))
    assert (again.registration_epoch, list(again.orders)) == (2, [])
    assert (await catalogue.store.get(made.workspace_id)).state is State.READY


async def test_a_node_that_cannot_run_commands_gets_workspaces_only_when_it_can_again(
    served: ServedChats, catalogue: Catalogue, admin: Person
) -> None:
    reporting = ReportingNode(served, served.ann.nodes)
    await reporting.register()
    await reporting.heartbeat(1, problem="commands cannot be run: not within 10 s")
    (shown,) = (await admin.ask(nodes_api.ListNodesRequest())).nodes
    assert (shown.state, shown.load.problem) == (
        node_pb2.NODE_STATE_ACTIVE,
        "commands cannot be run: not within 10 s",
    )
    made = (await create(served.ann)).workspace.workspace_id
    await catalogue.drive()
    waiting = await catalogue.store.get(made)
    await reporting.heartbeat(1)
    # The driver tries again after a pause.
    await served.pool.execute("UPDATE chat.workspaces SET driven_until = NULL")
    await catalogue.drive()
    ready = await catalogue.store.get(made)
    assert (waiting.state, waiting.node_id) == (State.PENDING, None)
    assert (ready.state, ready.node_id) == (State.READY, NODE_ID)


async def test_a_node_is_told_what_to_do_about_what_nobody_wants(
    served: ServedChats, catalogue: Catalogue
) -> None:
    reporting = ReportingNode(served, served.ann.nodes)
    await reporting.register()
    gone, stopped = [(await create(served.ann)).workspace.workspace_id for _ in range(2)]
    await catalogue.drive()
    await catalogue.control.remove(gone, is_forced=True)
    await catalogue.store.apply(stopped, Stop(StopReason.REQUESTED))
    await catalogue.drive()
    unknown = "00000000-0000-0000-0000-00000000aaaa"
    answer = await reporting.register(*(hosted(each, READY) for each in (gone, stopped, unknown)))
    orders = {each.workspace_id: each.instruction for each in answer.orders}
    assert orders == {
        gone: nodes_api.WORKSPACE_INSTRUCTION_REMOVE,
        stopped: nodes_api.WORKSPACE_INSTRUCTION_STOP,
        unknown: nodes_api.WORKSPACE_INSTRUCTION_STOP,
    }

"""Templates, workspaces, quotas and nodes over gRPC: who may, what comes back, what is refused."""

import asyncio
from typing import Any

import grpc

from chatd.workspaces.domain.commands import ConfirmPolicy, Warn
from chatd.workspaces.domain.templates import SCRATCH_ID
from parley.api.chat.v1 import chat_service_pb2 as chat_api
from parley.api.workspace.v1 import node_service_pb2 as nodes_api
from parley.api.workspace.v1 import sandbox_pb2, template_pb2, workspace_pb2
from parley.api.workspace.v1 import workspace_service_pb2 as api
from parley.identity import User, UserId
from parley.rpc import acting_for
from support.chatd.chats.chat_people import ANN_ID, Person
from support.chatd.chats.served_chats import ServedChats
from support.chatd.workspaces.catalogue_calls import READY, STOPPED, ReportingNode, create, hosted
from support.chatd.workspaces.served_catalogue import Catalogue

BEGUN, NOTHING = api.LIFECYCLE_OUTCOME_BEGUN, api.LIFECYCLE_OUTCOME_NOTHING_TO_DO


async def test_a_workspace_lives_from_its_creation_to_its_removal(
    served: ServedChats, catalogue: Catalogue
) -> None:
    ann = served.ann
    made = await create(ann, request_id="one", name="my-work")
    assert (made.outcome, made.workspace.state) == (BEGUN, workspace_pb2.WORKSPACE_STATE_PENDING)
    again = await create(ann, request_id="one", name="my-work")
    assert (again.outcome, again.workspace) == (api.LIFECYCLE_OUTCOME_UNDER_WAY, made.workspace)
    await catalogue.drive()
    named: dict[str, Any] = {"workspace_id": made.workspace.workspace_id}
    ready = (await ann.ask(api.GetWorkspaceRequest(**named))).workspace
    assert (ready.state, ready.name, ready.epoch) == (READY, "my-work", 1)
    assert (ready.root_path, ready.template_name, ready.ttl_ms) == (
        "/workspace",
        "scratch",
        7_200_000,
    )
    assert ready.deadline.ToSeconds() - ready.started_at.ToSeconds() == 7200

    stopping = await ann.ask(api.StopWorkspaceRequest(request_id="s", **named))
    assert stopping.outcome == BEGUN
    await catalogue.drive()
    stopped = await ann.ask(api.StopWorkspaceRequest(request_id="s", **named))
    assert (stopped.outcome, stopped.workspace.state) == (NOTHING, STOPPED)
    await ann.ask(api.StartWorkspaceRequest(request_id="t", **named))
    await catalogue.drive()
    assert (await ann.ask(api.GetWorkspaceRequest(**named))).workspace.epoch == 2
    listed = await ann.ask(api.ListWorkspacesRequest())
    assert [each.name for each in listed.workspaces] == ["my-work"]
    await ann.ask(api.DeleteWorkspaceRequest(request_id="d", **named))
    await catalogue.drive()
    assert (await ann.ask(api.ListWorkspacesRequest())).workspaces == []
    assert catalogue.host.files == set()


async def test_workspaces_are_their_owners_and_administrators_see_all(
    served: ServedChats, admin: Person, catalogue: Catalogue
) -> None:
    made = (await create(served.ann)).workspace
    named: dict[str, Any] = {"workspace_id": made.workspace_id}
    for request in (
        api.GetWorkspaceRequest(**named),
        api.StopWorkspaceRequest(request_id="r", **named),
        api.StartWorkspaceRequest(request_id="r", **named),
        api.DeleteWorkspaceRequest(request_id="r", **named),
        api.SetWorkspaceTtlRequest(request_id="r", **named),
        api.IssueAttachTicketRequest(request_id="r", **named),
        api.MergeForkRequest(request_id="r", fork_workspace_id=made.workspace_id),
        api.ForkWorkspaceRequest(request_id="r", source_workspace_id=made.workspace_id),
    ):
        assert (await served.eve.refusal(request)).reason == "WORKSPACE_NOT_FOUND"
    assert (await served.eve.ask(api.ListWorkspacesRequest())).workspaces == []
    others = api.ListWorkspacesRequest(owner_id=ANN_ID)
    assert (await served.eve.refusal(others)).reason == "FORBIDDEN"
    assert len((await admin.ask(others)).workspaces) == 1
    assert (await admin.ask(api.GetWorkspaceRequest(**named))).workspace == made


async def test_a_used_up_quota_is_refused_with_its_structure(
    served: ServedChats, catalogue: Catalogue
) -> None:
    for _ in range(2):
        await create(served.ann)
    request = api.CreateWorkspaceRequest(request_id="more", template_id=SCRATCH_ID)
    refused = await served.ann.refusal(request)
    assert (refused.status, refused.reason) == (
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "QUOTA_EXHAUSTED",
    )
    assert refused.metadata == {
        "dimension": "live_workspaces",
        "used": "2",
        "limit": "2",
        "remedy": "stop one that is not needed now; its files are kept",
    }
    quota = (await served.ann.ask(api.GetQuotaRequest())).dimensions
    assert (quota[0].used, quota[0].limit) == (2, 2)
    # Others have their own.
    await create(served.eve)


async def test_ten_workspaces_in_a_row_are_created_and_the_next_minute_waits_for_its_turn(
    served: ServedChats, catalogue: Catalogue
) -> None:
    """The catalogue allows ten a minute; each is deleted at once."""
    ann = served.ann
    for number in range(10):
        made = (await create(ann)).workspace.workspace_id
        await ann.ask(api.DeleteWorkspaceRequest(request_id=f"d{number}", workspace_id=made))
        await catalogue.drive()
    request = api.CreateWorkspaceRequest(request_id="more", template_id=SCRATCH_ID)
    refused = await ann.refusal(request)
    assert (refused.status, refused.reason, refused.metadata) == (
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "TOO_MANY_NEW_WORKSPACES",
        {"limit": "10"},
    )
    assert refused.retry_after_s is not None
    assert 0 < refused.retry_after_s <= 60
    # Others have their own.
    await create(served.eve)


async def test_a_workspace_is_stopped_and_started_again_so_many_times_a_minute(
    served: ServedChats, catalogue: Catalogue
) -> None:
    """The catalogue allows ten a minute; a start of one that runs is none."""
    ann = served.ann
    made: dict[str, Any] = {"workspace_id": (await create(ann)).workspace.workspace_id}
    await catalogue.drive()
    for number in range(10):
        await ann.ask(api.StopWorkspaceRequest(request_id=f"s{number}", **made))
        await catalogue.drive()
        for again in range(2):
            await ann.ask(api.StartWorkspaceRequest(request_id=f"b{number}-{again}", **made))
            await catalogue.drive()
    await ann.ask(api.StopWorkspaceRequest(request_id="last", **made))
    await catalogue.drive()
    refused = await ann.refusal(api.StartWorkspaceRequest(request_id="more", **made))
    assert refused.reason == "TOO_MANY_NEW_WORKSPACES"


async def test_a_forced_removal_counts_until_the_node_has_removed_it(
    served: ServedChats, catalogue: Catalogue
) -> None:
    ann = served.ann
    reporting = ReportingNode(served, ann.nodes)
    await reporting.register()
    made = [(await create(ann)).workspace.workspace_id for _ in range(2)]
    await catalogue.drive()
    gone, lost = made
    forced = api.DeleteWorkspaceRequest(request_id="d", workspace_id=gone, force=True)
    removing = (await ann.ask(forced)).workspace
    assert removing.state == workspace_pb2.WORKSPACE_STATE_STOPPING
    more = api.CreateWorkspaceRequest(request_id="more", template_id=SCRATCH_ID)
    assert (await ann.refusal(more)).reason == "QUOTA_EXHAUSTED"
    assert catalogue.host.files == set(made)
    await catalogue.drive()
    assert (catalogue.host.files, await live(ann)) == ({lost}, 1)
    # Of a node that is lost nobody waits for an answer; it is told when it comes back.
    await served.pool.execute("UPDATE chat.nodes SET state = 'lost'")
    forced = api.DeleteWorkspaceRequest(request_id="e", workspace_id=lost, force=True)
    assert (await ann.ask(forced)).workspace.state == workspace_pb2.WORKSPACE_STATE_DELETED
    assert await live(ann) == 0
    back = await reporting.register(hosted(lost, STOPPED))
    assert [(each.workspace_id, each.instruction) for each in back.orders] == [
        (lost, nodes_api.WORKSPACE_INSTRUCTION_REMOVE)
    ]


async def live(person: Person) -> int:
    """Return how many workspaces count as live."""
    return int((await person.ask(api.GetQuotaRequest())).dimensions[0].used)


async def test_a_fork_is_a_workspace_beside_its_source(
    served: ServedChats, catalogue: Catalogue
) -> None:
    made = (await create(served.ann)).workspace
    request = api.ForkWorkspaceRequest(
        request_id="f", source_workspace_id=made.workspace_id, mode=workspace_pb2.FORK_MODE_COPY
    )
    assert (await served.ann.refusal(request)).reason == "WORKSPACE_NOT_READY"
    await catalogue.drive()
    fork = (await served.ann.ask(request)).workspace
    assert (fork.kind, fork.parent_workspace_id) == (
        template_pb2.WORKSPACE_KIND_FORK,
        made.workspace_id,
    )
    await catalogue.drive()
    assert (await catalogue.store.get(fork.workspace_id)).node_id == (
        await catalogue.store.get(made.workspace_id)
    ).node_id
    merge = api.MergeForkRequest(request_id="m", fork_workspace_id=made.workspace_id)
    assert (await served.ann.refusal(merge)).reason == "NOT_A_FORK"


async def test_a_chat_is_forked_with_a_copy_of_its_workspace_or_with_the_same(
    served: ServedChats, catalogue: Catalogue
) -> None:
    made = (await create(served.ann)).workspace.workspace_id
    chat = await served.ann.create("one", workspace_id=made)
    request = chat_api.ForkChatRequest(
        request_id="f", chat_id=chat.id, workspace=chat_api.FORK_WORKSPACE_USE_COPY
    )
    assert (await served.ann.refusal(request)).reason == "WORKSPACE_NOT_READY"
    await catalogue.drive()
    fork = (await served.ann.ask(request)).chat
    copy = await catalogue.store.get(fork.workspace_id)
    assert (copy.parent_id, copy.owner_id) == (made, served.ann.id)
    assert (await served.ann.ask(request)).chat.workspace_id == copy.id
    same = chat_api.ForkChatRequest(
        request_id="g", chat_id=chat.id, workspace=chat_api.FORK_WORKSPACE_USE_SAME
    )
    assert (await served.ann.ask(same)).chat.workspace_id == made


async def test_an_administrator_changes_what_a_workspace_may_do_while_it_runs(
    served: ServedChats, admin: Person, catalogue: Catalogue
) -> None:
    made = (await create(served.ann)).workspace.workspace_id
    await catalogue.drive()
    request = api.SetWorkspacePolicyRequest(
        request_id="p",
        workspace_id=made,
        network=sandbox_pb2.NetworkPolicy(access=sandbox_pb2.NETWORK_ACCESS_OPEN),
    )
    changed = (await admin.ask(request)).workspace
    assert changed.network.access == sandbox_pb2.NETWORK_ACCESS_OPEN
    assert [(each.id, each.policy) for each in catalogue.granted] == [(made, 1)]
    (unpublished,) = await catalogue.store.unpublished(10)
    assert unpublished.workspace.id == made
    await catalogue.store.apply(made, ConfirmPolicy(1, 1))
    assert await catalogue.store.unpublished(10) == ()
    narrower = api.SetWorkspacePolicyRequest(
        request_id="q", workspace_id=made, limits=sandbox_pb2.ResourceLimits(pids=5)
    )
    after = (await admin.ask(narrower)).workspace
    assert (after.network, after.limits.pids) == (changed.network, 5)
    # Widening its network is not for whoever works in it.
    assert (await served.ann.refusal(request)).reason == "ROLE_NOT_ALLOWED"


async def test_a_watch_tells_states_lines_warnings_and_the_end(
    served: ServedChats, catalogue: Catalogue
) -> None:
    made = (await create(served.ann)).workspace
    told: list[str] = []
    with acting_for(User(UserId(served.ann.id), served.ann.role)):
        call = served.ann.catalogue.WatchWorkspace(
            api.WatchWorkspaceRequest(workspace_id=made.workspace_id)
        )
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:

        async def follow() -> None:
            async for each in call:
                kind = each.WhichOneof("kind")
                state = workspace_pb2.WorkspaceState.Name(each.workspace.state)[16:].lower()
                told.append(state if kind == "workspace" else kind)
                seen.set()

        seen = asyncio.Event()
        following = tasks.create_task(follow())
        await seen.wait()
        await catalogue.drive()
        shift = "UPDATE chat.workspaces SET deadline_at = now() + interval '1 min'"
        await served.pool.execute(shift)
        await catalogue.store.apply(made.workspace_id, Warn())
        while "autostop_warning" not in told:
            seen.clear()
            await seen.wait()
        await catalogue.control.remove(made.workspace_id, is_forced=True)
        await catalogue.drive()
        await following
    assert told[0] == "pending"
    assert told[-1] == "closed"
    assert {"ready", "log_line", "deleted"} <= set(told)

"""Templates, workspaces, quotas and nodes over gRPC: who may, what comes back, what is refused."""

import asyncio
from typing import Any

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from chatd.domain.chat import ChatId, Owner
from chatd.domain.workspaces.commands import LoseNode, Stop, TellPolicy, Warn
from chatd.domain.workspaces.errors import WorkspaceNotReady
from chatd.domain.workspaces.ports import Site
from chatd.domain.workspaces.templates import SCRATCH_ID
from chatd.domain.workspaces.workspace import State, StopReason
from parley.api.workspace.v1 import node_pb2, sandbox_pb2, template_pb2, workspace_pb2
from parley.api.workspace.v1 import node_service_pb2 as nodes_api
from parley.api.workspace.v1 import workspace_service_pb2 as api
from parley.identity import Role as UserRole
from parley.identity import User, UserId
from parley.rpc import acting_for
from support.served_catalogue import ADDRESS, Catalogue
from support.served_chats import ANN_ID, EVES_GROUP, Person, ServedChats

NODE_ID = "00000000-0000-0000-0000-0000000000f1"
READY, STOPPED = workspace_pb2.WORKSPACE_STATE_READY, workspace_pb2.WORKSPACE_STATE_STOPPED
BEGUN, NOTHING = api.LIFECYCLE_OUTCOME_BEGUN, api.LIFECYCLE_OUTCOME_NOTHING_TO_DO


@pytest.fixture
def catalogue(served: ServedChats) -> Catalogue:
    found: Catalogue = served.catalogue
    return found


@pytest.fixture
def admin(served: ServedChats) -> Person:
    served.bob.role = UserRole.ADMIN
    return served.bob


def git_template(**more: Any) -> template_pb2.Template:
    return template_pb2.Template(
        name="go-service",
        kind=template_pb2.WORKSPACE_KIND_GIT,
        git=template_pb2.GitSource(url="https://example.org/{repo}.git"),
        parameters=[template_pb2.TemplateParameter(name="repo", required=True)],
        presets=[template_pb2.TemplatePreset(name="usual", parameters={"repo": "one"})],
        enabled_for_agents=True,
        ttl_ms=7_200_000,
        ttl_max_ms=28_800_000,
        **more,
    )


async def create(person: Person, **more: Any) -> api.CreateWorkspaceResponse:
    more = {"request_id": person.fresh(), "template_id": SCRATCH_ID, **more}
    answer: api.CreateWorkspaceResponse = await person.ask(api.CreateWorkspaceRequest(**more))
    return answer


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


async def test_a_forced_removal_counts_until_the_node_has_removed_it(
    served: ServedChats, catalogue: Catalogue
) -> None:
    ann = served.ann
    beating = Beating(served, ann.nodes)
    await beating.register()
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
    back = await beating.register(hosted(lost, STOPPED))
    assert [(each.workspace_id, each.instruction) for each in back.orders] == [
        (lost, nodes_api.WORKSPACE_INSTRUCTION_REMOVE)
    ]


async def live(person: Person) -> int:
    """Return how many workspaces count as live."""
    return int((await person.ask(api.GetQuotaRequest())).dimensions[0].used)


async def test_templates_are_managed_and_seen_by_their_groups(
    served: ServedChats, admin: Person
) -> None:
    request = api.CreateTemplateRequest(
        request_id="t1", template=git_template(group_ids=[EVES_GROUP])
    )
    assert (await served.ann.refusal(request)).status is grpc.StatusCode.PERMISSION_DENIED
    made = (await admin.ask(request)).template
    assert (await admin.ask(request)).template == made
    assert (made.git.url, made.presets[0].name, made.etag) == (
        "https://example.org/{repo}.git",
        "usual",
        "1",
    )
    get = api.GetTemplateRequest(template_id=made.template_id)
    assert (await served.ann.refusal(get)).reason == "TEMPLATE_NOT_FOUND"
    assert (await served.eve.ask(get)).template == made

    update = api.UpdateTemplateRequest(
        request_id="u",
        template=template_pb2.Template(
            template_id=made.template_id, description="For services", bump_ms=60_000, etag="1"
        ),
        update_mask=FieldMask(paths=["description", "bump_ms"]),
    )
    changed = (await admin.ask(update)).template
    expected = template_pb2.Template()
    expected.CopyFrom(made)
    expected.description, expected.bump_ms, expected.etag = "For services", 60_000, "2"
    assert changed == expected
    assert (await admin.refusal(update)).reason == "VERSION_CONFLICT"

    listed = await served.eve.ask(api.ListTemplatesRequest(query="go"))
    assert [each.template.name for each in listed.templates] == ["go-service"]
    assert listed.recommended_template_id == made.template_id
    assert "create_workspace" in listed.next_step
    workspace = (
        await create(served.eve, template_id=made.template_id, parameters={"repo": "two"})
    ).workspace
    assert dict(workspace.parameters) == {"repo": "two"}
    missing = api.CreateWorkspaceRequest(request_id="m", template_id=made.template_id)
    refused = await served.eve.refusal(missing)
    assert (refused.reason, refused.metadata["field"]) == ("INVALID_REQUEST", "parameters.repo")
    await admin.ask(api.DeleteTemplateRequest(request_id="d", template_id=made.template_id))
    assert (await served.eve.refusal(get)).reason == "TEMPLATE_NOT_FOUND"


@pytest.mark.parametrize(
    ("asked", "installation", "ttl_ms"),
    [({}, 0, 7_200_000), ({}, 60_000, 60_000), ({"ttl_ms": 120_000}, 60_000, 120_000)],
)
async def test_the_lifetime_is_what_was_asked_else_the_installations_else_the_templates(
    served: ServedChats, catalogue: Catalogue, asked: Any, installation: int, ttl_ms: int
) -> None:
    catalogue.ttl.ttl_ms = installation
    assert (await create(served.ann, **asked)).workspace.ttl_ms == ttl_ms


async def test_a_lifetime_is_changed_within_its_bounds(
    served: ServedChats, catalogue: Catalogue
) -> None:
    made = (await create(served.ann)).workspace
    await catalogue.drive()
    named: dict[str, Any] = {"request_id": "r", "workspace_id": made.workspace_id}
    changed = (await served.ann.ask(api.SetWorkspaceTtlRequest(**named, ttl_ms=60_000))).workspace
    assert changed.deadline.ToSeconds() - changed.started_at.ToSeconds() == 60
    refused = await served.ann.refusal(api.SetWorkspaceTtlRequest(**named, ttl_ms=1))
    assert refused.reason == "INVALID_REQUEST"


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
    (untold,) = await catalogue.store.untold(10)
    assert untold.workspace.id == made
    await catalogue.store.apply(made, TellPolicy(1, 1))
    assert await catalogue.store.untold(10) == ()
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


def node(**more: Any) -> node_pb2.Node:
    return node_pb2.Node(
        node_id=NODE_ID,
        name="n1",
        address="unix:/run/n1.sock",
        capacity=node_pb2.NodeCapacity(workspaces=10),
        sandbox=sandbox_pb2.SandboxReport(level=sandbox_pb2.SANDBOX_LEVEL_NS, summary="good"),
        **more,
    )


class Beating:
    """A toolrunner that tells of itself."""

    def __init__(self, served: ServedChats, stub: Any) -> None:
        self.stub = stub
        self.served = served
        self.count = 0

    async def register(self, *hosted: node_pb2.HostedWorkspace) -> Any:
        self.count += 1
        servicer = self.served.catalogue.servicers[1]
        request = nodes_api.RegisterNodeRequest(
            request_id=f"r{self.count}", node=node(), workspaces=hosted
        )
        return await servicer.RegisterNode(request, None)

    async def beat(self, epoch: int, *hosted: node_pb2.HostedWorkspace) -> Any:
        servicer = self.served.catalogue.servicers[1]
        request = nodes_api.HeartbeatRequest(
            request_id="h", node_id=NODE_ID, registration_epoch=epoch, workspaces=hosted
        )
        return await servicer.Heartbeat(request, None)


def hosted(
    workspace_id: str, state: "workspace_pb2.WorkspaceState.ValueType", **more: Any
) -> node_pb2.HostedWorkspace:
    return node_pb2.HostedWorkspace(workspace_id=workspace_id, epoch=1, state=state, **more)


async def test_a_node_registers_hosts_is_lost_and_comes_back_with_what_it_has(
    served: ServedChats, catalogue: Catalogue, admin: Person
) -> None:
    beating = Beating(served, served.ann.nodes)
    first = await beating.register()
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
    await beating.beat(1, hosted(made.workspace_id, READY, processes=1, usage=usage))
    busy = await catalogue.store.get(made.workspace_id)
    assert busy.usage is not None
    assert (busy.state, busy.usage.disk_bytes) == (State.BUSY, 7)

    silent = "UPDATE chat.nodes SET last_seen_at = now() - interval '1 min'"
    await served.pool.execute(silent)
    for each in await catalogue.nodes.lose():
        for there in await catalogue.store.on_node(each.id):
            await catalogue.store.apply(there.workspace.id, LoseNode(each.id))
    lost = (await served.ann.ask(api.GetWorkspaceRequest(workspace_id=made.workspace_id))).workspace
    assert lost.failure.kind == workspace_pb2.WORKSPACE_FAILURE_KIND_NODE_LOST
    (shown,) = (await admin.ask(nodes_api.ListNodesRequest())).nodes
    assert (shown.state, shown.sandbox.summary) == (node_pb2.NODE_STATE_LOST, "good")

    again = await beating.register(hosted(made.workspace_id, READY))
    assert (again.registration_epoch, list(again.orders)) == (2, [])
    assert (await catalogue.store.get(made.workspace_id)).state is State.READY


async def test_a_node_is_told_what_to_do_about_what_nobody_wants(
    served: ServedChats, catalogue: Catalogue
) -> None:
    beating = Beating(served, served.ann.nodes)
    await beating.register()
    gone, stopped = [(await create(served.ann)).workspace.workspace_id for _ in range(2)]
    await catalogue.drive()
    await catalogue.control.remove(gone, is_forced=True)
    await catalogue.store.apply(stopped, Stop(StopReason.REQUESTED))
    await catalogue.drive()
    unknown = "00000000-0000-0000-0000-00000000aaaa"
    answer = await beating.register(*(hosted(each, READY) for each in (gone, stopped, unknown)))
    orders = {each.workspace_id: each.instruction for each in answer.orders}
    assert orders == {
        gone: nodes_api.WORKSPACE_INSTRUCTION_REMOVE,
        stopped: nodes_api.WORKSPACE_INSTRUCTION_STOP,
        unknown: nodes_api.WORKSPACE_INSTRUCTION_STOP,
    }


async def test_a_chat_gets_a_scratch_workspace_with_its_first_tool_and_keeps_it(
    served: ServedChats, catalogue: Catalogue
) -> None:
    chat_id = ChatId((await served.ann.create()).id)
    ann, sites = Owner(ANN_ID, "member"), catalogue.sites
    assert await sites.begin(chat_id) == Site(ADDRESS, chat_id)
    assert (await catalogue.store.of_chat(chat_id)).workspace is None  # type: ignore[union-attr]
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(catalogue.driver.run())
        both = [tasks.create_task(sites.ready(chat_id, ann)) for _ in range(2)]
        await asyncio.wait(both)
        site = both[0].result()
        assert [each.result() for each in both] == [Site(ADDRESS, chat_id, 1)] * 2
        # The next turn offers the same, and works there after one look.
        assert await sites.begin(chat_id) == site
        assert await sites.ready(chat_id, ann) == site
        # Stopped meanwhile, it is started without asking anybody.
        await catalogue.control.stop(chat_id)
        await catalogue.control.settled(chat_id, 20.0)
        await sites.begin(chat_id)
        assert await sites.ready(chat_id, ann) == Site(ADDRESS, chat_id, 2)
        running.cancel()
    assert set(catalogue.bound) == {chat_id}


async def test_a_chat_works_in_the_workspace_that_was_made_for_it(
    served: ServedChats, catalogue: Catalogue
) -> None:
    chat_id = ChatId((await served.ann.create()).id)
    ann, sites = Owner(ANN_ID, "member"), catalogue.sites
    made = (await create(served.ann, chat_id=chat_id)).workspace
    assert catalogue.bound == [chat_id]
    assert (await served.ann.get(chat_id)).workspace_id == made.workspace_id
    await catalogue.drive()
    assert await sites.begin(chat_id) == Site(ADDRESS, made.workspace_id, 1)
    assert await sites.ready(chat_id, ann) == Site(ADDRESS, made.workspace_id, 1)
    told = await sites.awareness(chat_id, is_child=False)
    assert told.startswith(f"This chat has the workspace {made.name} (kind scratch")
    assert await sites.begin(chat_id) == Site(ADDRESS, made.workspace_id, 1)
    child = ChatId(await served.add_child(chat_id))
    assert await sites.begin(child) == Site(ADDRESS, made.workspace_id, 1)

    await catalogue.control.stop(made.workspace_id)
    await catalogue.drive()
    await sites.begin(chat_id)
    with pytest.raises(WorkspaceNotReady) as refused:
        await sites.ready(chat_id, ann)
    assert refused.value.next_step == "start_workspace"

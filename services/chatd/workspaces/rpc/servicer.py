"""WorkspaceService: templates, workspaces and quotas."""

import hashlib
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

import grpc

from chatd.models.rpc.fields import masked
from chatd.primitives.domain.errors import InvalidRequest, NotPermitted, WorkspaceNotFound
from chatd.primitives.domain.ids import Owner, OwnerId
from chatd.primitives.rpc import fields
from chatd.primitives.rpc.page_tokens import length_of, place_of, token_of
from chatd.users.rpc.callers import caller_as_owner
from chatd.workspaces.clients.merges import report_to_proto, strategy_of
from chatd.workspaces.domain.commands import NewFork, NewWorkspace, SetPolicy
from chatd.workspaces.domain.merges import MergeRequest
from chatd.workspaces.domain.templates import Template
from chatd.workspaces.domain.workspace import LIVE, State, Workspace
from chatd.workspaces.engine.control import Control, workspace_id_for
from chatd.workspaces.engine.fork_merges import ForkMerges
from chatd.workspaces.rpc.access import WorkspaceAccess
from chatd.workspaces.rpc.attach_tickets import AttachTickets
from chatd.workspaces.rpc.convert import (
    STATES,
    OffsetPage,
    WorkspacePage,
    quota_to_proto,
    workspace_to_proto,
)
from chatd.workspaces.rpc.convert_templates import (
    CHANGEABLE,
    changed_template,
    groups_of,
    limits_of,
    merged_template,
    network_of,
    summary_to_proto,
    template_of,
    template_to_proto,
)
from chatd.workspaces.rpc.references import WorkspaceReferences
from chatd.workspaces.rpc.watch import WorkspaceWatch
from chatd.workspaces.store.reads import WorkspacePlace
from parley.api.workspace.v1 import workspace_pb2
from parley.api.workspace.v1 import workspace_service_pb2 as api
from parley.api.workspace.v1.workspace_service_pb2_grpc import WorkspaceServiceServicer

Context = grpc.aio.ServicerContext

ADMINISTRATORS: Final = frozenset({"owner", "admin"})
SHOWN: Final = tuple(state for state in State if state is not State.DELETED)


class WorkspaceServicer(WorkspaceServiceServicer):
    """Serves workspaces; the server's error table converts errors to problems.

    Args:
        control: Executes the operations.
        merges: Merges forks.
        access: Tells readers of a chat from users who do not know it.
        watch: Streams changes of workspaces.
        tickets: Issues tickets for terminals.
        publish_policy: Called with a workspace whose policy changed.
        references: Rejects ids and names that do not exist.
    """

    def __init__(
        self,
        control: Control,
        merges: ForkMerges,
        access: WorkspaceAccess,
        watch: WorkspaceWatch,
        tickets: AttachTickets,
        publish_policy: Callable[[Workspace], Awaitable[None]],
        references: WorkspaceReferences,
    ) -> None:
        self._references = references
        self._control = control
        self._merges = merges
        self._access = access
        self._watch = watch
        self._tickets = tickets
        self._publish_policy = publish_policy

    async def ListTemplates(
        self, request: api.ListTemplatesRequest, context: Context
    ) -> api.ListTemplatesResponse:
        """List the templates that the caller may use, best first."""
        owner = caller_as_owner()
        query = request.query.strip()
        length = length_of(request.page_size)
        page = place_of(request.page_token, OffsetPage)
        first = 0 if page is None else page.after
        ranking = await self._control.list_templates(
            owner.id, query, for_agents=request.for_agents, is_all_seen=_is_administrator(owner)
        )
        shown = ranking.entries[first : first + length]
        has_more = first + length < len(ranking.entries)
        return api.ListTemplatesResponse(
            templates=map(summary_to_proto, shown),
            next_page_token=token_of(OffsetPage(first + length)) if has_more else "",
            recommended_template_id=ranking.recommended_id,
            next_step=ranking.next_step,
        )

    async def GetTemplate(
        self, request: api.GetTemplateRequest, context: Context
    ) -> api.GetTemplateResponse:
        """Read one template."""
        owner = caller_as_owner()
        template = await self._control.template(
            owner.id,
            fields.uuid_of(request.template_id, "template_id"),
            is_all_seen=_is_administrator(owner),
        )
        return api.GetTemplateResponse(template=template_to_proto(template))

    async def CreateTemplate(
        self, request: api.CreateTemplateRequest, context: Context
    ) -> api.CreateTemplateResponse:
        """Create a template, once for each request id."""
        owner = caller_as_owner()
        key = fields.client_key_of(request, request.request_id)
        template_id = str(uuid.uuid5(uuid.UUID(owner.id), f"template {key.key}"))
        preset_ids = [
            str(uuid.uuid5(uuid.UUID(template_id), f"preset {index}"))
            for index in range(len(request.template.presets))
        ]
        template = template_of(request.template, template_id, preset_ids)
        await self._references.require_groups(template.group_ids)
        stored = await self._control.templates.create(template, key.body_hash)
        return api.CreateTemplateResponse(template=template_to_proto(stored))

    async def UpdateTemplate(
        self, request: api.UpdateTemplateRequest, context: Context
    ) -> api.UpdateTemplateResponse:
        """Change fields of a template."""
        given = request.template
        template_id = fields.uuid_of(given.template_id, "template.template_id")
        changed = masked(tuple(request.update_mask.paths), CHANGEABLE)
        preset_ids = [
            str(uuid.uuid5(uuid.UUID(template_id), f"preset {index} {request.request_id}"))
            for index in range(len(given.presets))
        ]

        if "group_ids" in changed:
            old = await self._control.template(caller_as_owner().id, template_id, is_all_seen=True)
            await self._references.require_groups(groups_of(given), stored=old.group_ids)

        def edit(old: Template) -> Template:
            merged = merged_template(template_to_proto(old), given, changed)
            return changed_template(old, template_of(merged, old.id, preset_ids), changed)

        stored = await self._control.templates.update(
            template_id, edit, _version(given.etag) if given.etag else None
        )
        return api.UpdateTemplateResponse(template=template_to_proto(stored))

    async def DeleteTemplate(
        self, request: api.DeleteTemplateRequest, context: Context
    ) -> api.DeleteTemplateResponse:
        """Delete a template."""
        await self._control.templates.delete(fields.uuid_of(request.template_id, "template_id"))
        return api.DeleteTemplateResponse()

    async def CreateWorkspace(
        self, request: api.CreateWorkspaceRequest, context: Context
    ) -> api.CreateWorkspaceResponse:
        """Create a workspace, once for each request id."""
        owner = caller_as_owner()
        key = fields.client_key_of(request, request.request_id)
        asked = NewWorkspace(
            owner_id=owner.id,
            key=key.key,
            body_hash=key.body_hash,
            template_id=fields.uuid_of(request.template_id, "template_id"),
            name=request.name.strip(),
            parameters=dict(request.parameters),
            preset_id=fields.optional_uuid(request.preset_id, "preset_id"),
            ttl_ms=request.ttl_ms if request.HasField("ttl_ms") else None,
            chat_id=fields.optional_uuid(request.chat_id, "chat_id"),
            secret_names=tuple(dict.fromkeys(request.secret_names)),
        )
        if not await self._is_repeated(owner.id, key.key):
            await self._references.require_chat(asked.chat_id, owner.id)
            await self._references.require_secrets(asked.secret_names, owner.id)
        workspace, is_new = await self._control.create(asked, is_all_seen=_is_administrator(owner))
        return api.CreateWorkspaceResponse(
            workspace=workspace_to_proto(workspace),
            outcome=_outcome(workspace, is_begun=is_new),
        )

    async def ForkWorkspace(
        self, request: api.ForkWorkspaceRequest, context: Context
    ) -> api.ForkWorkspaceResponse:
        """Create a copy of a workspace, once for each request id."""
        owner = caller_as_owner()
        key = fields.client_key_of(request, request.request_id)
        mode = workspace_pb2.ForkMode.Name(request.mode).removeprefix("FORK_MODE_").lower()
        asked = NewFork(
            owner_id=owner.id,
            key=key.key,
            body_hash=key.body_hash,
            source_id=fields.uuid_of(request.source_workspace_id, "source_workspace_id"),
            mode="" if mode == "unspecified" else mode,
            name=request.name.strip(),
            chat_id=fields.optional_uuid(request.chat_id, "chat_id"),
        )
        if not await self._is_repeated(owner.id, key.key):
            await self._references.require_chat(asked.chat_id, owner.id)
        workspace, _ = await self._control.fork(asked)
        return api.ForkWorkspaceResponse(workspace=workspace_to_proto(workspace))

    async def MergeFork(
        self, request: api.MergeForkRequest, context: Context
    ) -> api.MergeForkResponse:
        """Merge a fork into its parent, on its node."""
        owner = caller_as_owner()
        key = fields.client_key_of(request, request.request_id)
        asked = MergeRequest(
            _named(owner.id, key.key),
            strategy_of(request.strategy),
            tuple(request.paths),
            is_dry=request.dry_run,
        )
        fork_id = fields.uuid_of(request.fork_workspace_id, "fork_workspace_id")
        async with self._access.refusing_readers():
            report = await self._merges.merge(fork_id, owner.id, asked)
        return api.MergeForkResponse(report=report_to_proto(report))

    async def GetWorkspace(
        self, request: api.GetWorkspaceRequest, context: Context
    ) -> api.GetWorkspaceResponse:
        """Read one workspace."""
        workspace = await self._own(request.workspace_id)
        return api.GetWorkspaceResponse(workspace=workspace_to_proto(workspace))

    async def ListWorkspaces(
        self, request: api.ListWorkspacesRequest, context: Context
    ) -> api.ListWorkspacesResponse:
        """List workspaces: live ones first, then newest use first."""
        owner = caller_as_owner()
        node_id = fields.optional_uuid(request.node_id, "node_id")
        owner_id = fields.optional_uuid(request.owner_id, "owner_id")
        if not _is_administrator(owner) and (node_id or owner_id not in ("", owner.id)):
            raise NotPermitted("list the workspaces of others")
        for index, state in enumerate(request.states):
            if state not in STATES:
                raise InvalidRequest(f"states[{index}]", "is not known")
        length = length_of(request.page_size)
        page = place_of(request.page_token, WorkspacePage)
        found = await self._control.workspaces.page(
            owner_id=None if node_id and not owner_id else OwnerId(owner_id or owner.id),
            states=tuple(STATES[each] for each in request.states) or SHOWN,
            node_id=node_id,
            after=None
            if page is None
            else WorkspacePlace(page.is_live, page.last_used_at, page.id),
            length=length + 1,
        )
        shown = found[:length]
        token = ""
        if len(found) > length:
            last = shown[-1]
            token = token_of(WorkspacePage(int(last.state in LIVE), last.last_used_at, last.id))
        return api.ListWorkspacesResponse(
            workspaces=map(workspace_to_proto, shown), next_page_token=token
        )

    async def StartWorkspace(
        self, request: api.StartWorkspaceRequest, context: Context
    ) -> api.StartWorkspaceResponse:
        """Start a workspace, or create a failed one again."""
        workspace = await self._own(request.workspace_id, is_owner_only=True)
        before, after = await self._control.start(workspace, dict(request.parameters))
        return api.StartWorkspaceResponse(
            workspace=workspace_to_proto(after),
            outcome=_outcome(after, is_begun=after is not before),
        )

    async def StopWorkspace(
        self, request: api.StopWorkspaceRequest, context: Context
    ) -> api.StopWorkspaceResponse:
        """Stop a workspace."""
        workspace = await self._own(request.workspace_id)
        before, after = await self._control.stop(workspace.id)
        return api.StopWorkspaceResponse(
            workspace=workspace_to_proto(after),
            outcome=_outcome(after, is_begun=after is not before),
        )

    async def DeleteWorkspace(
        self, request: api.DeleteWorkspaceRequest, context: Context
    ) -> api.DeleteWorkspaceResponse:
        """Remove a workspace with its files."""
        workspace = await self._own(request.workspace_id)
        before, after = await self._control.remove(workspace.id, is_forced=request.force)
        return api.DeleteWorkspaceResponse(
            workspace=workspace_to_proto(after),
            outcome=_outcome(after, is_begun=after is not before),
        )

    async def SetWorkspaceTtl(
        self, request: api.SetWorkspaceTtlRequest, context: Context
    ) -> api.SetWorkspaceTtlResponse:
        """Change the lifetime of a workspace."""
        workspace = await self._own(request.workspace_id)
        after = await self._control.set_ttl(workspace, request.ttl_ms)
        return api.SetWorkspaceTtlResponse(workspace=workspace_to_proto(after))

    async def SetWorkspacePolicy(
        self, request: api.SetWorkspacePolicyRequest, context: Context
    ) -> api.SetWorkspacePolicyResponse:
        """Change the network policy and limits of a workspace."""
        workspace = await self._own(request.workspace_id)
        command = SetPolicy(
            network_of(request.network, "") if request.HasField("network") else None,
            limits_of(request.limits) if request.HasField("limits") else None,
        )
        _, after = await self._control.workspaces.apply(workspace.id, command)
        await self._publish_policy(after)
        return api.SetWorkspacePolicyResponse(workspace=workspace_to_proto(after))

    async def WatchWorkspace(
        self, request: api.WatchWorkspaceRequest, context: Context
    ) -> AsyncIterator[api.WatchWorkspaceResponse]:
        """Stream changes of a workspace until it is deleted or this process stops."""
        workspace = await self._own(request.workspace_id)
        following = self._watch.follow(
            workspace, request.after_log_sequence, is_using=not request.passive
        )
        async for response in following:
            yield response

    async def GetQuota(
        self, request: api.GetQuotaRequest, context: Context
    ) -> api.GetQuotaResponse:
        """Return the quota usage of a user."""
        owner = caller_as_owner()
        owner_id = fields.optional_uuid(request.owner_id, "owner_id") or owner.id
        if owner_id != owner.id and not _is_administrator(owner):
            raise NotPermitted("read the quota of others")
        uses = await self._control.quota(OwnerId(owner_id))
        return api.GetQuotaResponse(dimensions=map(quota_to_proto, uses))

    async def IssueAttachTicket(
        self, request: api.IssueAttachTicketRequest, context: Context
    ) -> api.IssueAttachTicketResponse:
        """Issue a ticket for a terminal."""
        return await self._tickets.issue(request)

    async def _is_repeated(self, owner_id: OwnerId, key: str) -> bool:
        """Return whether a request created its workspace before, so that its ids were checked."""
        try:
            await self._control.workspaces.own(workspace_id_for(owner_id, key), owner_id)
        except WorkspaceNotFound:
            return False
        return True

    async def _own(self, given_id: str, *, is_owner_only: bool = False) -> Workspace:
        """Return a workspace of the caller; administrators get those of all users.

        Raises:
            WorkspaceNotFound: there is none that they may see.
        """
        owner = caller_as_owner()
        workspace_id = fields.uuid_of(given_id, "workspace_id")
        if _is_administrator(owner) and not is_owner_only:
            return await self._control.workspaces.get(workspace_id)
        return await self._control.workspaces.own(workspace_id, owner.id)


def _is_administrator(owner: Owner) -> bool:
    return owner.role in ADMINISTRATORS


def _outcome(workspace: Workspace, *, is_begun: bool) -> "api.LifecycleOutcome.ValueType":
    if is_begun:
        return api.LIFECYCLE_OUTCOME_BEGUN
    if workspace.state in (State.PENDING, State.PREPARING, State.STOPPING):
        return api.LIFECYCLE_OUTCOME_UNDER_WAY
    return api.LIFECYCLE_OUTCOME_NOTHING_TO_DO


def _named(owner_id: OwnerId, key: str) -> str:
    """Return the request id of this caller for a node's journal."""
    return f"person-{hashlib.sha256(f'{owner_id} {key}'.encode()).hexdigest()}"


def _version(etag: str) -> int:
    # A text that is not a number was never issued as an etag, so no row matches.
    return int(etag) if etag.isdecimal() and len(etag) < 19 else -1

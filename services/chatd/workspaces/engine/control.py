"""Operations of users and models on workspaces: create, start, stop, remove, fork, TTL, quota."""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, Protocol

from chatd.primitives.domain.errors import InvalidRequest, NameTaken
from chatd.primitives.domain.ids import ChatId, Owner, OwnerClaim, OwnerId
from chatd.primitives.domain.requests import ClientKey
from chatd.users.domain.groups import Groups, GroupsUnavailable
from chatd.workspaces.domain.commands import NewFork, NewWorkspace, Remove, SetTtl, Start, Stop
from chatd.workspaces.domain.errors import TemplateNotFound, WorkspaceNotReady
from chatd.workspaces.domain.lifetime import TTL_MS_MAX, TTL_MS_MIN, chosen_lifetime
from chatd.workspaces.domain.nodes import OUT_OF_REACH
from chatd.workspaces.domain.ports import ChatWorkspace, LogLine, Nodes
from chatd.workspaces.domain.quota import QuotaLimits, QuotaUse, uses
from chatd.workspaces.domain.ranking import Ranking, rank
from chatd.workspaces.domain.spec import Kind, Source
from chatd.workspaces.domain.templates import (
    Template,
    changed_values,
    chosen_values,
    fitting_name,
    made_name,
    restarted,
    spec_of,
)
from chatd.workspaces.domain.workspace import (
    USABLE,
    Lifetime,
    State,
    StopReason,
    Workspace,
    WorkspaceId,
)
from chatd.workspaces.engine.start_rate import StartRate
from chatd.workspaces.engine.watchers import Changes
from chatd.workspaces.store.templates import PostgresTemplates
from chatd.workspaces.store.workspaces import PostgresWorkspaces
from parley.clock import Clock

#: How long a tool waits for a workspace to become ready or stopped.
PREPARING_S: Final = 600.0
#: States in which a start begins another preparation.
RESTARTED: Final = frozenset({State.STOPPED, State.FAILED})
CAN_BE_FORKED: Final = frozenset({*USABLE, State.STOPPED})


class InstallationTtl(Protocol):
    """The default lifetime of workspaces in the installation's settings."""

    async def workspace_ttl_ms(self) -> int:
        """Return the lifetime; 0 leaves it to templates."""
        ...


def workspace_id_for(owner_id: OwnerId, key: str) -> WorkspaceId:
    """Return the id of the workspace that a request creates, the same for every retry."""
    return WorkspaceId(str(uuid.uuid5(uuid.UUID(owner_id), f"workspace {key}")))


class Control:
    """Checks and stores requests; the driver executes them.

    Args:
        workspaces: The store of workspaces.
        templates: The store of templates.
        groups: The groups of users, for access to templates.
        ttl: The installation's lifetime.
        limits: The quota of one user.
        nodes: The nodes.
        changes: Wakes requests that wait for changes.
        bound: Called with a chat that was bound to another workspace.
        clock: The clock of creation times and starts.
    """

    def __init__(
        self,
        workspaces: PostgresWorkspaces,
        templates: PostgresTemplates,
        *,
        groups: Groups,
        ttl: InstallationTtl,
        limits: QuotaLimits,
        nodes: Nodes,
        changes: Changes,
        bound: Callable[[ChatId], None],
        clock: Clock,
    ) -> None:
        self.workspaces = workspaces
        self.templates = templates
        self.changes = changes
        self._groups = groups
        self._ttl = ttl
        self._limits = limits
        self._starts = StartRate(clock, limits.created_per_minute)
        self._nodes = nodes
        self._bound = bound
        self._clock = clock

    async def group_ids(self, owner_id: OwnerId) -> frozenset[str]:
        """Return the groups of a user; none while no gateway answers."""
        try:
            return frozenset(await self._groups.of(owner_id))
        except GroupsUnavailable:
            return frozenset()

    async def list_templates(
        self, owner_id: OwnerId, query: str, *, for_agents: bool, is_all_seen: bool = False
    ) -> Ranking:
        """Return the templates that a user may use, best first."""
        entries, now = await self.templates.list(
            owner_id,
            await self.group_ids(owner_id),
            is_all_seen=is_all_seen,
            for_agents=for_agents,
        )
        return rank(entries, query, now or self._clock.now())

    async def template(
        self, owner_id: OwnerId, template_id: str, *, is_all_seen: bool = False
    ) -> Template:
        """Return a template that a user may use.

        Raises:
            TemplateNotFound: there is none.
        """
        groups = await self.group_ids(owner_id)
        return await self.templates.get(template_id, groups, is_all_seen=is_all_seen)

    async def create(
        self,
        asked: NewWorkspace,
        *,
        is_all_seen: bool = False,
        claim: OwnerClaim | None = None,
    ) -> tuple[Workspace, bool]:
        """Create a workspace, or return that of the same request; also return whether it is new.

        Raises:
            TemplateNotFound: there is none that the owner may use.
            InvalidRequest: values are invalid for the template.
            QuotaExhausted: the owner has reached a limit.
            TooManyNewWorkspaces: the owner has created too many within a minute.
            RequestIdReused: the key was used with another body.
            TransitionNotAllowed: the chat that would use it is in a turn.
            AgentAtWork: the same of one of its agents.
        """
        template = await self.template(asked.owner_id, asked.template_id, is_all_seen=is_all_seen)
        values = chosen_values(template, asked.parameters, asked.preset_id)
        workspace_id = workspace_id_for(asked.owner_id, asked.key)
        suffix = workspace_id[-4:]
        spec = spec_of(template, values, chat=(asked.chat_id or workspace_id)[:8])
        now = await self.workspaces.now()
        workspace = Workspace(
            id=workspace_id,
            name=fitting_name(asked.name, template.name, suffix),
            owner_id=asked.owner_id,
            kind=template.kind,
            spec=replace(spec, secret_names=asked.secret_names),
            lifetime=await self._lifetime(template.lifetime, asked.ttl_ms),
            created_at=now,
            last_used_at=now,
            template_id=template.id,
            template_name=template.name,
            parameters=values,
        )
        return await self._add(workspace, asked.body_hash, asked.chat_id, suffix, claim)

    async def fork(self, asked: NewFork) -> tuple[Workspace, bool]:
        """Create a copy of a workspace.

        Raises:
            WorkspaceNotFound: the owner has no such workspace.
            WorkspaceNotReady: it cannot be copied now.
            QuotaExhausted: the owner has reached a limit.
            TooManyNewWorkspaces: the owner has created too many within a minute.
        """
        source = await self.workspaces.own(asked.source_id, asked.owner_id)
        if source.state not in CAN_BE_FORKED:
            raise WorkspaceNotReady(source.id, source.state)
        workspace_id = workspace_id_for(asked.owner_id, asked.key)
        suffix = workspace_id[-4:]
        now = await self.workspaces.now()
        # The placement of the parent is set when this workspace is placed.
        copied = Source(parent_id=source.id, fork_mode=asked.mode)
        workspace = Workspace(
            id=workspace_id,
            name=fitting_name(asked.name, f"{source.name}-fork", suffix),
            owner_id=asked.owner_id,
            kind=Kind.FORK,
            spec=replace(source.spec, kind=Kind.FORK, source=copied, setup_script=""),
            lifetime=await self._lifetime_of_copy(source),
            created_at=now,
            last_used_at=now,
            template_id=source.template_id,
            template_name=source.template_name,
            parameters=source.parameters,
            parent_id=source.id,
        )
        return await self._add(workspace, asked.body_hash, asked.chat_id, suffix)

    async def fork_of_chat(self, chat_id: ChatId, owner: Owner, key: ClientKey) -> str:
        """Copy the workspace of a chat, once for each key; return its id, empty for none.

        Raises:
            WorkspaceNotReady: it cannot be copied now.
            QuotaExhausted: the owner has reached a limit.
            TooManyNewWorkspaces: the owner has created too many within a minute.
        """
        found = await self.workspaces.of_chat(chat_id)
        if found is None or found.workspace is None:
            return ""
        asked = NewFork(owner.id, f"chat {key.key}", key.body_hash, found.workspace.id)
        copy, _ = await self.fork(asked)
        return copy.id

    async def start(
        self,
        workspace: Workspace,
        parameters: Mapping[str, str],
        claim: OwnerClaim | None = None,
    ) -> tuple[Workspace, Workspace]:
        """Start a workspace, or create a failed one again; return it before and after.

        Raises:
            WorkspaceNotReady: it is stopping or deleted.
            InvalidRequest: a parameter cannot be changed or is invalid.
            QuotaExhausted: the limit of live workspaces is reached.
            TooManyNewWorkspaces: the owner has started too many within a minute.
        """
        if workspace.state in RESTARTED:
            self._starts.count(workspace.owner_id)
        if not parameters:
            return await self.workspaces.start(workspace.id, Start(), self._limits, claim=claim)
        template = await self._template_of(workspace)
        values = changed_values(template, workspace.parameters, parameters)
        kept = restarted(workspace.spec, spec_of(template, values, chat=workspace.id[:8]))
        return await self.workspaces.start(
            workspace.id,
            Start(values),
            self._limits,
            lambda started: replace(started, spec=kept),
            claim=claim,
        )

    async def stop(
        self, workspace_id: str, reason: StopReason = StopReason.REQUESTED
    ) -> tuple[Workspace, Workspace]:
        """Stop a workspace; return it before and after."""
        return await self.workspaces.apply(workspace_id, Stop(reason))

    async def stop_for(self, workspace_id: str, claim: OwnerClaim) -> tuple[Workspace, Workspace]:
        """Stop a workspace for a chat; return it before and after.

        Raises:
            FenceLost: another process owns the chat.
        """
        stop = Stop(StopReason.REQUESTED)
        return await self.workspaces.apply_owned(workspace_id, stop, claim)

    async def remove(self, workspace_id: str, *, is_forced: bool) -> tuple[Workspace, Workspace]:
        """Remove a workspace with its files; return it before and after.

        Args:
            workspace_id: The workspace.
            is_forced: Whether to delete it at once if its node is lost. Otherwise the node is
                ordered to remove it, and until then the workspace counts.
        """
        is_lost = is_forced and await self._is_node_lost(workspace_id)
        return await self.workspaces.apply(workspace_id, Remove(is_node_lost=is_lost))

    async def set_ttl(self, workspace: Workspace, ttl_ms: int) -> Workspace:
        """Change the lifetime of a workspace.

        Raises:
            InvalidRequest: it is too short, too long, endless where that is not allowed, or fixed
                by its template.
        """
        _check_ttl(ttl_ms)
        _check_fixed(workspace.lifetime, ttl_ms)
        most_ms = workspace.lifetime.ttl_max_ms
        if most_ms and (ttl_ms == 0 or ttl_ms > most_ms):
            raise InvalidRequest("ttl_ms", f"is beyond the most of its template, {most_ms}")
        _, after = await self.workspaces.apply(workspace.id, SetTtl(ttl_ms))
        return after

    async def quota(self, owner_id: OwnerId) -> tuple[QuotaUse, ...]:
        """Return the quota usage of a user."""
        return uses(await self.workspaces.counted(owner_id), self._limits)

    async def of_chat(self, chat_id: ChatId) -> ChatWorkspace | None:
        """Return the workspace of a chat, None if there is no such chat."""
        return await self.workspaces.of_chat(chat_id)

    async def lines(self, workspace: Workspace) -> tuple[LogLine, ...]:
        """Return the log of a workspace's preparation."""
        return await self.workspaces.lines(workspace.id, workspace.epoch, 0)

    def id_for(self, owner_id: OwnerId, key: str) -> WorkspaceId:
        """Return the id of the workspace that a request creates."""
        return workspace_id_for(owner_id, key)

    async def settled(self, workspace_id: str, within_s: float = PREPARING_S) -> Workspace:
        """Return a workspace once it has settled, or its current state after a timeout."""
        return await self.changes.settled(
            workspace_id, lambda: self.workspaces.get(workspace_id), within_s
        )

    async def _add(
        self,
        workspace: Workspace,
        body_hash: bytes,
        chat_id: str,
        suffix: str,
        claim: OwnerClaim | None = None,
    ) -> tuple[Workspace, bool]:
        chat, owner_id = ChatId(chat_id), workspace.owner_id
        if chat_id and claim is None:
            # Asked before, so that no workspace is left that its chat does not use.
            await self.workspaces.require_rest(chat, workspace.id, owner_id)
        try:
            added = await self.workspaces.add(workspace, body_hash, self._limits, claim)
        except NameTaken:
            renamed = replace(workspace, name=made_name(workspace.name, suffix))
            added = await self.workspaces.add(renamed, body_hash, self._limits, claim)
        if chat_id and (
            await self.workspaces.choose(chat, added[0].id, owner_id)
            if claim is None
            else await self.workspaces.bind(chat, added[0].id, claim)
        ):
            self._bound(chat)
        return added

    async def _is_node_lost(self, workspace_id: str) -> bool:
        workspace = await self.workspaces.get(workspace_id)
        if workspace.node_id is None:
            return False
        node = await self._nodes.find(workspace.node_id)
        return node is None or node.state in OUT_OF_REACH

    async def _template_of(self, workspace: Workspace) -> Template:
        if not workspace.template_id:
            raise InvalidRequest("parameters", "it was made from no template")
        try:
            return await self.template(workspace.owner_id, workspace.template_id)
        except TemplateNotFound:
            raise InvalidRequest("parameters", "its template is gone") from None

    async def _lifetime_of_copy(self, source: Workspace) -> Lifetime:
        """Return the lifetime of a workspace, unless its template has fixed another one since."""
        if not source.template_id:
            return source.lifetime
        try:
            template = await self.template(source.owner_id, source.template_id, is_all_seen=True)
        except TemplateNotFound:
            return source.lifetime
        if not template.lifetime.is_ttl_fixed:
            return source.lifetime
        return await self._lifetime(template.lifetime, None)

    async def _lifetime(self, template: Lifetime, asked_ms: int | None) -> Lifetime:
        if asked_ms is not None:
            _check_ttl(asked_ms)
            _check_fixed(template, asked_ms)
        installation_ms = await self._ttl.workspace_ttl_ms()
        return chosen_lifetime(template, asked_ms=asked_ms, installation_ms=installation_ms)


def _check_fixed(lifetime: Lifetime, ttl_ms: int) -> None:
    if lifetime.is_ttl_fixed and ttl_ms != lifetime.ttl_ms:
        raise InvalidRequest(
            "ttl_ms", f"is fixed by its template at {lifetime.ttl_ms}; leave it out"
        )


def _check_ttl(ttl_ms: int) -> None:
    if ttl_ms and not TTL_MS_MIN <= ttl_ms <= TTL_MS_MAX:
        raise InvalidRequest("ttl_ms", "is neither 0 nor between a minute and 30 days")

"""Handlers of the bus topics that chatd subscribes to."""

from typing import Protocol

from chatd.approvals.engine.cached_rules import CachedRules
from chatd.chats.store.chats import PostgresChats
from chatd.hooks.engine.cached_hooks import CachedHooks
from chatd.models.engine.configuration import ConfigurationCache
from chatd.offboarding.engine.group_cleanup import GroupCleanup
from chatd.offboarding.engine.suspended_users import UserSuspension
from chatd.primitives.domain.errors import ChatNotFound
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.push.engine.cached_targets import CachedTargets
from chatd.spend.engine.enforcement import LimitedSpending
from chatd.tools.mcpgateway import McpTools
from chatd.turns.worker.worker import Worker
from chatd.users.clients.groups import CachedGroups
from chatd.workspace_servers.engine.servers import WorkspaceServers
from chatd.workspaces.engine.watchers import Changes
from parley.bus import Bus, Notice, Resync
from parley.postgres import DatabaseUnavailable

CHAT_TOPIC = "chat"
METADATA_TOPIC = "chat.noted"
SWEEP_TOPIC = "chat.sweep"
LIMITS_TOPIC = "chat.limits"
SERVERS_TOPIC = "mcp.servers"
USERS_TOPIC = "identity.users"
GROUPS_TOPIC = "identity.groups"
CONFIG_TOPIC = "chat:config"
APPROVALS_TOPIC = "chat.approvals"
WORKSPACES_TOPIC = "chat.workspaces"
TRUSTED_SERVERS_TOPIC = "chat.trusted_servers"
HOOKS_TOPIC = "chat.hooks"
PUSH_TOPIC = "chat.push"


class ChatListener(Protocol):
    """Receives the notices about chats in this process."""

    def on_notice(self, chat_id: ChatId, version: int) -> None:
        """Called when a chat has reached a version, in this or another process."""
        ...

    def on_resync(self) -> None:
        """Called when notices may have been lost."""
        ...


async def follow_chats(
    bus: Bus, chats: PostgresChats, followers: ChatListener, worker: Worker
) -> None:
    """Pass notices of chats to the subscribers and to the runners of chats that run here."""
    async with bus.subscribe(CHAT_TOPIC) as notices:
        async for notice in notices:
            match notice:
                case Notice(_, chat_id, version):
                    followers.on_notice(ChatId(chat_id), version)
                    await _notify_runner(chats, worker, ChatId(chat_id), version)
                case Resync():
                    # Runners need nothing here: each lease renewal compares the versions and finds
                    # missed changes.
                    followers.on_resync()


class MetadataListener(Protocol):
    """Receives changes of the metadata that chat lists show."""

    def metadata_changed(self, chat_id: ChatId) -> None:
        """Called when a chat's metadata changed without a change of its execution state."""
        ...

    def on_resync(self) -> None:
        """Called when notices may have been lost."""
        ...


async def follow_metadata(bus: Bus, lists: MetadataListener) -> None:
    """Pass on notices about chats whose metadata, such as the title, another process changed."""
    async with bus.subscribe(METADATA_TOPIC) as notices:
        async for notice in notices:
            match notice:
                case Notice(_, chat_id):
                    lists.metadata_changed(ChatId(chat_id))
                case Resync():
                    lists.on_resync()


async def follow_sweeps(bus: Bus, worker: Worker) -> None:
    """Start a sweep when a chat without an owner is announced, or when notices may be lost."""
    async with bus.subscribe(SWEEP_TOPIC) as notices:
        async for _ in notices:
            worker.poke()


async def follow_limits(bus: Bus, spending: LimitedSpending) -> None:
    """Invalidate the cached spend limits on each notice, and when notices may have been lost."""
    async with bus.subscribe(LIMITS_TOPIC) as notices:
        async for _ in notices:
            spending.forget()


async def follow_config(bus: Bus, configuration: ConfigurationCache) -> None:
    """Reload the configuration entry that a notice names, or all entries after a resync."""
    async with bus.subscribe(CONFIG_TOPIC) as notices:
        async for notice in notices:
            match notice:
                case Notice(_, what, version):
                    configuration.on_notice(what, version)
                case Resync():
                    configuration.on_resync()


async def follow_approvals(bus: Bus, rules: CachedRules) -> None:
    """Forget the approval rules of the scope that a notice names, or all after a resync."""
    async with bus.subscribe(APPROVALS_TOPIC) as notices:
        async for notice in notices:
            match notice:
                case Notice(_, scope):
                    rules.on_notice(scope)
                case Resync():
                    rules.on_resync()


async def follow_hooks(bus: Bus, hooks: CachedHooks) -> None:
    """Read the hooks again on each notice, and when notices may have been lost."""
    async with bus.subscribe(HOOKS_TOPIC) as notices:
        async for _ in notices:
            hooks.forget()


async def follow_push(bus: Bus, targets: CachedTargets) -> None:
    """Forget the devices of users that another process changed."""
    async with bus.subscribe(PUSH_TOPIC) as notices:
        async for notice in notices:
            match notice:
                case Notice(_, owner_id):
                    targets.forget(OwnerId(owner_id))
                case Resync():
                    targets.clear()


async def follow_workspaces(bus: Bus, changes: Changes) -> None:
    """Wake requests that wait for workspaces that another process changed."""
    async with bus.subscribe(WORKSPACES_TOPIC) as notices:
        async for notice in notices:
            match notice:
                case Notice(_, workspace_id):
                    changes.on_notice(workspace_id)
                case Resync():
                    changes.on_resync()


async def follow_trusted_servers(bus: Bus, servers: WorkspaceServers) -> None:
    """Stop servers of workspaces that another process trusts no longer, or trusts otherwise."""
    async with bus.subscribe(TRUSTED_SERVERS_TOPIC) as notices:
        async for notice in notices:
            match notice:
                case Notice(_, workspace_id):
                    await servers.on_notice(workspace_id)
                case Resync():
                    await servers.on_resync()


async def follow_servers(bus: Bus, tools: McpTools) -> None:
    """Invalidate the cached tool catalogues when an MCP server changed or a notice may be lost."""
    async with bus.subscribe(SERVERS_TOPIC) as notices:
        async for _ in notices:
            tools.forget_catalogues()


class MembershipListener(Protocol):
    """Receives changes of the groups of users."""

    def groups_changed(self, user_id: OwnerId) -> None:
        """Called when the groups of a user may have changed."""
        ...

    def group_changed(self, group_id: str) -> None:
        """Called when a group was deleted."""
        ...

    def on_groups_resync(self) -> None:
        """Called when notices may have been lost."""
        ...


async def follow_users(
    bus: Bus, suspension: UserSuspension, groups: CachedGroups, lists: MembershipListener
) -> None:
    """Refresh the status and the groups of users that the gateway changed."""
    async with bus.subscribe(USERS_TOPIC) as notices:
        async for notice in notices:
            match notice:
                case Notice(_, user_id):
                    groups.forget(OwnerId(user_id))
                    lists.groups_changed(OwnerId(user_id))
                    await suspension.on_notice(OwnerId(user_id))
                case Resync():
                    groups.mark_stale()
                    lists.on_groups_resync()


async def follow_groups(
    bus: Bus, groups: CachedGroups, group_cleanup: GroupCleanup, lists: MembershipListener
) -> None:
    """Drop a deleted group from the cached memberships, and remove the rows that name it."""
    async with bus.subscribe(GROUPS_TOPIC) as notices:
        async for notice in notices:
            match notice:
                case Notice(_, group_id):
                    groups.forget_group(group_id)
                    lists.group_changed(group_id)
                    await group_cleanup.on_notice(group_id)
                case Resync():
                    groups.mark_stale()
                    lists.on_groups_resync()


async def _notify_runner(
    chats: PostgresChats, worker: Worker, chat_id: ChatId, version: int
) -> None:
    mailbox = worker.mailbox(chat_id)
    if mailbox is None or mailbox.newest.snapshot_version >= version:
        return
    try:
        worker.deliver(await chats.state(chat_id))
    except (ChatNotFound, DatabaseUnavailable):
        # The chat is deleted, or the next lease renewal delivers the state.
        return

"""What this process hears of chats that others moved, and who is told."""

from typing import Protocol

from chatd.chats.store.chats import PostgresChats
from chatd.models.engine.configuration import ConfigurationCache
from chatd.offboarding.engine.group_cleanup import GroupCleanup
from chatd.offboarding.engine.suspended_users import UserSuspension
from chatd.primitives.domain.errors import ChatNotFound
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.spend.engine.enforcement import LimitedSpending
from chatd.tools.mcpgateway import McpTools
from chatd.turns.worker.worker import Worker
from chatd.users.clients.groups import CachedGroups
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
WORKSPACES_TOPIC = "chat.workspaces"


class ChatListener(Protocol):
    """Those who follow chats in this process."""

    def on_notice(self, chat_id: ChatId, version: int) -> None:
        """Learn that a chat reached a version, wherever that was written."""
        ...

    def on_resync(self) -> None:
        """Learn that news may have been lost."""
        ...


async def follow_chats(
    bus: Bus, chats: PostgresChats, followers: ChatListener, worker: Worker
) -> None:
    """Wake watchers of chats that moved elsewhere, and tell the runners of those that run here."""
    async with bus.subscribe(CHAT_TOPIC) as notices:
        async for notice in notices:
            match notice:
                case Notice(_, chat_id, version):
                    followers.on_notice(ChatId(chat_id), version)
                    await _notify_runner(chats, worker, ChatId(chat_id), version)
                case Resync():
                    # Runners need no more than this: every renewal compares what they missed.
                    followers.on_resync()


class MetadataListener(Protocol):
    """Those who follow how chats look in lists."""

    def metadata_changed(self, chat_id: ChatId) -> None:
        """Learn that a chat looks different, though its execution did not move."""
        ...

    def on_resync(self) -> None:
        """Learn that news may have been lost."""
        ...


async def follow_metadata(bus: Bus, lists: MetadataListener) -> None:
    """Tell of chats whose titles and the like changed elsewhere."""
    async with bus.subscribe(METADATA_TOPIC) as notices:
        async for notice in notices:
            match notice:
                case Notice(_, chat_id):
                    lists.metadata_changed(ChatId(chat_id))
                case Resync():
                    lists.on_resync()


async def follow_sweeps(bus: Bus, worker: Worker) -> None:
    """Sweep when somebody says that a chat waits for an owner, or may have said so."""
    async with bus.subscribe(SWEEP_TOPIC) as notices:
        async for _ in notices:
            worker.poke()


async def follow_limits(bus: Bus, spending: LimitedSpending) -> None:
    """Read the spend limits anew when one changed, or may have."""
    async with bus.subscribe(LIMITS_TOPIC) as notices:
        async for _ in notices:
            spending.forget()


async def follow_config(bus: Bus, configuration: ConfigurationCache) -> None:
    """Read of the configuration anew what changed, or all of it when that may be missed."""
    async with bus.subscribe(CONFIG_TOPIC) as notices:
        async for notice in notices:
            match notice:
                case Notice(_, what, version):
                    configuration.on_notice(what, version)
                case Resync():
                    configuration.on_resync()


async def follow_workspaces(bus: Bus, changes: Changes) -> None:
    """Wake those who wait for workspaces that changed elsewhere."""
    async with bus.subscribe(WORKSPACES_TOPIC) as notices:
        async for notice in notices:
            match notice:
                case Notice(_, workspace_id):
                    changes.on_notice(workspace_id)
                case Resync():
                    changes.on_resync()


async def follow_servers(bus: Bus, tools: McpTools) -> None:
    """Ask for the tools of MCP servers anew when one of them changed, or may have."""
    async with bus.subscribe(SERVERS_TOPIC) as notices:
        async for _ in notices:
            tools.forget_catalogues()


async def follow_users(bus: Bus, suspension: UserSuspension, groups: CachedGroups) -> None:
    """Look after users whom the gateway changed: whether they may act, and in which groups."""
    async with bus.subscribe(USERS_TOPIC) as notices:
        async for notice in notices:
            match notice:
                case Notice(_, user_id):
                    groups.forget(OwnerId(user_id))
                    await suspension.on_notice(OwnerId(user_id))
                case Resync():
                    groups.mark_stale()


async def follow_groups(bus: Bus, groups: CachedGroups, group_cleanup: GroupCleanup) -> None:
    """Let nobody belong to a group that was deleted, and remove what names it."""
    async with bus.subscribe(GROUPS_TOPIC) as notices:
        async for notice in notices:
            match notice:
                case Notice(_, group_id):
                    groups.forget_group(group_id)
                    await group_cleanup.on_notice(group_id)
                case Resync():
                    groups.mark_stale()


async def _notify_runner(
    chats: PostgresChats, worker: Worker, chat_id: ChatId, version: int
) -> None:
    mailbox = worker.mailbox(chat_id)
    if mailbox is None or mailbox.newest.snapshot_version >= version:
        return
    try:
        worker.deliver(await chats.state(chat_id))
    except (ChatNotFound, DatabaseUnavailable):
        # Gone with its chat, or told by the next renewal.
        return

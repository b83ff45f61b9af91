"""Both journals of executors behind one port, so that one suite holds them to the same promises."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from mcpgateway.client.call import CallEnd, CallKey, CallRequest, Outcome
from mcpgateway.client.content import TextPart
from mcpgateway.runtime import journal as calls
from mcpgateway.servers.domain import ServerId
from mcpgateway.servers.errors import StaleOwner as CallStaleOwner
from parley.clock import FakeClock
from parley.postgres import Database
from toolrunner.journal.journal import Begun, Journal
from toolrunner.journal.records import ExecutionState, FileEffect, Key
from toolrunner.primitives.domain import ChatId, ExecutionId, WorkspaceId
from toolrunner.primitives.errors import StaleOwner
from toolrunner.processes import retention

CHAT = "00000000-0000-0000-0000-000000000001"
#: Of each result, so that a journal that keeps them is easily told from one that does not.
RESULT = b"r" * 1000


class KeptJournal(Protocol):
    """A journal, as the tests of its retention use it."""

    async def begin(self, execution_id: str, epoch: int = 1) -> bool:
        """Begin an execution; return whether it is new and would be executed."""
        ...

    async def finish(self, execution_ids: Sequence[str]) -> None:
        """Begin and finish executions, each with a result."""
        ...

    async def acknowledge(self, execution_ids: Sequence[str]) -> list[str]:
        """Acknowledge executions; return those that were skipped."""
        ...

    async def state(self, execution_id: str, epoch: int = 1) -> str:
        """Return never_seen, started, finished or acknowledged."""
        ...

    async def cancel(self, execution_id: str) -> str:
        """Cancel an execution, and return its state then."""
        ...

    async def is_stale(self, epoch: int) -> bool:
        """Return whether an owner of that epoch is refused."""
        ...

    async def pass_time(self, time: timedelta) -> None:
        """Let time pass, and then prune what is old."""
        ...

    async def entries(self) -> int:
        """Return how many entries there are, without tombstones."""
        ...

    async def tombstones(self) -> int:
        """Return how many tombstones there are."""
        ...

    async def size_bytes(self) -> int:
        """Return how much space it takes."""
        ...


@dataclass
class NodeJournal:
    """The journal of a toolrunner, in SQLite."""

    path: Path
    clock: FakeClock
    journal: Journal

    @classmethod
    def at(cls, directory: Path) -> "NodeJournal":
        clock, path = FakeClock(), directory / "journal.sqlite"
        journal = Journal.open(path, new_generation="g", boot_id="b", clock=clock)
        return cls(path, clock, journal)

    def key(self, execution_id: str, epoch: int = 1) -> Key:
        workspace_id = WorkspaceId("00000000-0000-0000-0000-000000000002")
        return Key(ExecutionId(execution_id), ChatId(CHAT), epoch, "g", workspace_id)

    def effect(self, execution_id: str, epoch: int = 1) -> FileEffect:
        key = self.key(execution_id, epoch)
        return FileEffect(execution_id, key, "/Write", b"h" * 32, key.workspace_id)

    async def begin(self, execution_id: str, epoch: int = 1) -> bool:
        return self.journal.begin(self.effect(execution_id, epoch), None) == Begun()

    async def finish(self, execution_ids: Sequence[str]) -> None:
        def finish(journal: Journal) -> None:
            for execution_id in execution_ids:
                journal.begin(self.effect(execution_id), None)
                journal.finish(self.effect(execution_id), RESULT, None)

        self.journal.together([finish])

    async def acknowledge(self, execution_ids: Sequence[str]) -> list[str]:
        return list(self.journal.acknowledge(execution_ids, "g"))

    async def state(self, execution_id: str, epoch: int = 1) -> str:
        found = self.journal.execution(self.key(execution_id, epoch))
        return "never_seen" if found is None else found.state.value

    async def cancel(self, execution_id: str) -> str:
        state = self.journal.cancel(self.key(execution_id)).state
        return "finished" if state is ExecutionState.CANCELLED else state.value

    async def is_stale(self, epoch: int) -> bool:
        try:
            self.journal.execution(self.key("stale", epoch))
        except StaleOwner:
            return True
        return False

    async def pass_time(self, time: timedelta) -> None:
        self.clock.advance(time.total_seconds())
        now, most = self.clock.now(), retention.PRUNED_AT_ONCE_MAX
        while most == self.journal.prune(
            acknowledged_before=now - retention.ACKNOWLEDGED_KEPT,
            finished_before=now - retention.UNACKNOWLEDGED_KEPT,
            at_once_max=most,
        ):
            pass

    async def entries(self) -> int:
        return self._count("executions")

    async def tombstones(self) -> int:
        return self._count("tombstones")

    async def size_bytes(self) -> int:
        connection = self.journal._connection
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return self.path.stat().st_size

    def _count(self, table: str) -> int:
        count: int = self.journal._connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        return count


@dataclass
class CallJournal:
    """The journal of mcpgateway, in PostgreSQL."""

    database: Database
    journal: calls.Journal

    def key(self, execution_id: str, epoch: int = 1) -> CallKey:
        return CallKey(execution_id, "chatd", CHAT, epoch)

    def request(self, execution_id: str, epoch: int = 1) -> CallRequest:
        return CallRequest(
            self.key(execution_id, epoch), ServerId("s"), "ann", "echo", b"{}", 60.0, 600.0
        )

    async def begin(self, execution_id: str, epoch: int = 1) -> bool:
        return (await self.journal.begin(self.request(execution_id, epoch)))[1]

    async def finish(self, execution_ids: Sequence[str]) -> None:
        if len(execution_ids) < 10:
            for execution_id in execution_ids:
                await self.journal.begin(self.request(execution_id))
                end = CallEnd(Outcome.SUCCEEDED, (TextPart(RESULT.decode()),))
                await self.journal.finish(execution_id, end)
            return
        # The rows that the journal would write, in one statement.
        await self.database.pool.execute(
            "INSERT INTO mcp.calls (execution_id, caller, chat_id, owner_epoch, sha256, server_id,"
            " user_id, tool, gateway_id, finished_at, outcome, parts)"
            " SELECT id, 'chatd', $2, 1, sha256(''), 's', 'ann', 'echo', gen_random_uuid(), now(),"
            " 'succeeded', $3 FROM unnest($1::text[]) AS id",
            list(execution_ids),
            CHAT,
            RESULT,
        )

    async def acknowledge(self, execution_ids: Sequence[str]) -> list[str]:
        acknowledged = await self.journal.acknowledge("chatd", execution_ids)
        return [each for each in execution_ids if each not in acknowledged]

    async def state(self, execution_id: str, epoch: int = 1) -> str:
        found = await self.journal.find(self.key(execution_id, epoch))
        if found is None:
            return "never_seen"
        if found.is_acknowledged:
            return "acknowledged"
        return "started" if found.end is None else "finished"

    async def cancel(self, execution_id: str) -> str:
        await self.journal.cancel(self.key(execution_id))
        return await self.state(execution_id)

    async def is_stale(self, epoch: int) -> bool:
        try:
            await self.journal.find(self.key("stale", epoch))
        except CallStaleOwner:
            return True
        return False

    async def pass_time(self, time: timedelta) -> None:
        await self.database.pool.execute(
            "UPDATE mcp.calls SET started_at = started_at - $1::interval,"
            " finished_at = finished_at - $1::interval,"
            " acknowledged_at = acknowledged_at - $1::interval",
            time,
        )
        # A tombstone is stored some time before the row of its call is deleted.
        assert not await self.journal.delete_expired()
        await self.database.pool.execute(
            "UPDATE mcp.calls SET pruned_at = pruned_at - $1::interval", calls.PRUNED_ROW_KEPT
        )
        await self.journal.delete_expired()

    async def entries(self) -> int:
        return await self._value("SELECT count(*) FROM mcp.calls")

    async def tombstones(self) -> int:
        return await self._value("SELECT count(*) FROM mcp.tombstones")

    async def size_bytes(self) -> int:
        # As the autovacuum does when it comes by.
        await self.database.pool.execute("VACUUM mcp.calls")
        return await self._value(
            "SELECT pg_total_relation_size('mcp.calls') + pg_total_relation_size('mcp.tombstones')"
        )

    async def _value(self, query: str) -> int:
        value: int = await self.database.pool.fetchval(query)
        return value

"""What one turn of a real stack costs the database, all roles together.

Aside are the leases and sweeps, which go on without turns, and what is written behind a turn:
partial answers and notifications. So is what nodes report of workspaces, whenever they do.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from support.faulty_stack import FaultyStack, Where
from support.statement_log import Transaction, logging_statements

# Longer than the beat of everything that the services do by themselves.
QUIET_S = 12.0
SETTLED_S = 0.3
OWN_CONNECTIONS = (" lease", " listen", " notify")
# What nodes report and drivers do, for workspaces that have nothing to do with the turn. What a
# turn looks up about its own workspace has another form, and is counted.
REPORTS = (
    "WHERE w.id = ANY ($1::uuid[]) UNION ALL",
    "AS new (id, old_version, ",
    "AS now FROM chat.workspaces w WHERE w.id = $1",
    "UPDATE chat.workspaces SET name = ",
)
# What asyncpg asks once on each connection of a pool, whichever turn happens to use it first.
INTROSPECTION = ("typeinfo_tree", "set_config('jit'")


@dataclass(frozen=True, slots=True)
class TurnCost:
    """What was executed for one turn.

    Attributes:
        statements: Each with its role before it.
        commits: How many transactions wrote something.
    """

    statements: tuple[str, ...]
    commits: int


async def turn_costs(
    watched: FaultyStack, chat_id: str, text: str, turns: int
) -> tuple[TurnCost, ...]:
    """Run turns in a chat that rests, one after another, and return what each of them cost."""
    log_file = watched.stack.home.postgres / "postgres.log"
    async with logging_statements(watched.connection, log_file) as log:
        # The first one also notes that the API key is in use, as happens once a minute.
        await _run(watched, chat_id, text)
        executed = []
        for _ in range(turns):
            log.skip()
            await _run(watched, chat_id, text)
            executed.append(log.read())
        await watched.pause(QUIET_S)
        background = frozenset(each.statements for each in log.read())
    return tuple(_cost(each, background) for each in executed)


async def _run(watched: FaultyStack, chat_id: str, text: str) -> None:
    """Send a message and wait until it is answered and nothing more is done for it."""
    body = {"content": [{"type": "text", "text": text}]}
    sent = watched.request("POST", f"/chats/{chat_id}/messages", body)

    def is_answered(where: Where) -> bool:
        return where.status == "waiting" and where.snapshot_version > sent["snapshot_version"]

    await watched.until(chat_id, is_answered)
    await watched.pause(SETTLED_S)


def _cost(executed: Iterable[Transaction], background: frozenset[tuple[str, ...]]) -> TurnCost:
    counted = [
        each
        for each in executed
        if each.role.startswith("parley_")
        and each.statements not in background
        and not each.application.endswith(OWN_CONNECTIONS)
        and not any("chat.chat_partials" in statement for statement in each.statements)
        and not any(mark in statement for statement in each.statements for mark in REPORTS)
    ]
    return TurnCost(
        statements=tuple(
            f"{each.role}: {text}"
            for each in counted
            for text in each.statements
            if not any(mark in text for mark in INTROSPECTION)
        ),
        commits=sum(each.is_writing for each in counted),
    )

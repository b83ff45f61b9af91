"""What one turn of a real stack costs the database, all roles together.

Aside are leases, what is written behind a turn at a pace of its own (partial answers, notifications
and the index of words), the rounds of schedules and goals, which are rarer than the quiet time, and
what the services do by themselves all the time, such as looking for chats without an owner.
Something that they do by themselves and that turns make them do more often is the turns' own, and
counted.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from time import monotonic

from support.database.statement_log import StatementLog, Transaction, logging_statements
from support.stack.faulty_stack import FaultyStack, Where

# Longer than the beat of everything that the services do by themselves.
QUIET_S = 12.0
SETTLED_S = 0.3
OWN_CONNECTIONS = (" lease", " listen", " notify")
# What asyncpg asks once on each connection of a pool, whichever turn happens to use it first.
INTROSPECTION = ("typeinfo_tree", "set_config('jit'")
NODES = "SELECT count(*) FROM chat.nodes WHERE state = 'active'"
NODES_S_MAX = 60.0
CHATS_AT_ONCE = 8
BURSTS_MAX = 30
SEVERAL_TURNS = 4
# How a workspace differs, and the facts of its chat, for the comparison of its instructions: both
# are read once some seconds after the first command in a workspace.
AFTER_WARM_UP = ("SET diff_status", "AS has_scratch")
WARM_UP_QUIET_S = 4.0
WARM_UP_S_MAX = 60.0
BEHIND_TURNS = ("chat.chat_partials", "chat.search_progress", "chat.schedules", "chat.goals")


@dataclass(frozen=True, slots=True)
class TurnCost:
    """What was executed for one turn.

    Attributes:
        statements: Each with its role before it.
        commits: How many transactions wrote something.
    """

    statements: tuple[str, ...]
    commits: int


@dataclass(frozen=True, slots=True)
class _Watched:
    """What was executed in a while."""

    executed: tuple[Transaction, ...]
    seconds: float

    def times(self, statements: tuple[str, ...]) -> int:
        return sum(each.statements == statements for each in self.executed)


async def turn_costs(
    watched: FaultyStack, chat_id: str, text: str, turns: int
) -> tuple[TurnCost, ...]:
    """Run turns in a chat that rests, one after another, and return what each of them cost.

    Nothing else may be done in the stack meanwhile.
    """
    log_file = watched.stack.home.postgres / "postgres.log"
    async with logging_statements(watched.connection, log_file) as log:
        await _until_nodes_are_known(watched)
        await _warm_connections(watched, text, log)
        await _until_warm_up_is_over(watched, log)
        # This one also notes that the API key is in use, as happens once a minute.
        await _run(watched, chat_id, text)
        found = []
        log.skip()
        for _ in range(turns):
            began_s = monotonic()
            await _run(watched, chat_id, text)
            found.append(_Watched(log.read(), monotonic() - began_s))
        await watched.pause(QUIET_S)
        quiet = _Watched(log.read(), QUIET_S)
    aside = _background(found, quiet)
    return tuple(_cost(each.executed, aside) for each in found)


async def _until_nodes_are_known(watched: FaultyStack) -> None:
    """Wait until nodes have registered, which they do once and perhaps after a stack is ready."""
    async with asyncio.timeout(NODES_S_MAX):
        while not await watched.connection.fetchval(NODES):
            await watched.pause(SETTLED_S)


async def _warm_connections(watched: FaultyStack, text: str, log: StatementLog) -> None:
    """Run turns side by side until every connection has run them before.

    More are never needed at once by turns one after another, so none is opened or used for the
    first time while turns are counted.
    """
    chat_ids = [watched.create(text) for _ in range(CHATS_AT_ONCE)]
    for chat_id in chat_ids:
        await watched.until(chat_id, lambda where: where.status == "waiting")
    for _ in range(BURSTS_MAX):
        log.skip()
        await _run_all(watched, chat_ids, text)
        if not any(_is_introspection(each) for each in log.read()):
            return
    raise AssertionError(f"connections are new after {BURSTS_MAX} times {CHATS_AT_ONCE} turns")


async def _until_warm_up_is_over(watched: FaultyStack, log: StatementLog) -> None:
    """Wait until nothing more is looked up or kept behind the turns of the chats that warmed up."""
    async with asyncio.timeout(WARM_UP_S_MAX):
        while True:
            log.skip()
            await watched.pause(WARM_UP_QUIET_S)
            texts = [text for each in log.read() for text in each.statements]
            if not any(mark in text for text in texts for mark in AFTER_WARM_UP):
                return


async def _run_all(watched: FaultyStack, chat_ids: Sequence[str], text: str) -> None:
    async with asyncio.TaskGroup() as tasks:
        sent = {
            chat_id: tasks.create_task(asyncio.to_thread(watched.send, chat_id, text))
            for chat_id in chat_ids
        }
    for chat_id, task in sent.items():
        await _until_answered(watched, chat_id, task.result())


async def _run(watched: FaultyStack, chat_id: str, text: str) -> None:
    """Send a message and wait until it is answered and nothing more is done for it."""
    await _until_answered(watched, chat_id, watched.send(chat_id, text))
    await watched.pause(SETTLED_S)


async def _until_answered(watched: FaultyStack, chat_id: str, sent_version: int) -> None:
    def is_answered(where: Where) -> bool:
        return where.status == "waiting" and where.snapshot_version > sent_version

    await watched.until(chat_id, is_answered)


def _is_introspection(transaction: Transaction) -> bool:
    return any(mark in text for text in transaction.statements for mark in INTROSPECTION)


def _background(turns: Sequence[_Watched], quiet: _Watched) -> frozenset[tuple[str, ...]]:
    """Return what happens without turns about as often as with them, or in one turn alone."""
    seconds = sum(each.seconds for each in turns)
    found = Counter(each.statements for each in quiet.executed)
    # What one turn of several had is no cost of turns: a stream between services began anew, say.
    once = {
        statements
        for statements in {each.statements for turn in turns for each in turn.executed}
        if len(turns) >= SEVERAL_TURNS and sum(bool(turn.times(statements)) for turn in turns) == 1
    }
    return frozenset(once) | frozenset(
        statements
        for statements, times in found.items()
        # Twice as often may be chance; once more for every second turn is none.
        if sum(each.times(statements) for each in turns)
        <= 2 * times / quiet.seconds * seconds + len(turns) / 2
    )


def _cost(executed: Iterable[Transaction], background: frozenset[tuple[str, ...]]) -> TurnCost:
    counted = [
        each
        for each in executed
        if each.role.startswith("parley_")
        and each.statements not in background
        and not each.application.endswith(OWN_CONNECTIONS)
        and not any(table in text for text in each.statements for table in BEHIND_TURNS)
    ]
    return TurnCost(
        statements=tuple(f"{each.role}: {text}" for each in counted for text in each.statements),
        commits=sum(each.is_writing for each in counted),
    )

"""Totals over the ledger; the statements check authorisation."""

from dataclasses import dataclass

import asyncpg

from chatd.primitives.domain.errors import ChatNotFound
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.spend.domain.usage import (
    TreeUsage,
    UsageReader,
    UsageRow,
    UsageSpan,
    UsageTotals,
    UserUsage,
)
from parley.postgres import Pool

CHATS_MAX = 100

# The sum of sums may exceed the integer range of the API.
_LARGEST = 2**63 - 1

TOTALS = ", ".join(
    (
        f"least(coalesce(sum(u.cost_micros), 0), {_LARGEST})::bigint AS cost_micros",
        "count(u.cost_micros) AS priced_calls",
        "count(u.id) - count(u.cost_micros) AS unpriced_calls",
        "count(u.id) FILTER (WHERE u.is_estimate) AS estimated_calls",
        "count(u.id) FILTER (WHERE u.is_fallback) AS fallback_calls",
        "least(coalesce(sum(u.cost_micros) FILTER (WHERE u.is_estimate), 0), "
        f"{_LARGEST})::bigint AS estimated_cost_micros",
        *(
            f"least(coalesce(sum(u.{name}), 0), {_LARGEST})::bigint AS {name}"
            for name in (
                "input_tokens",
                "output_tokens",
                "cache_read_tokens",
                "cache_write_tokens",
                "model_runtime_ms",
            )
        ),
    )
)

# A whole chat tree, and the cost of the chat alone, for its owner and for readers of all usage: $2
# reader, $3 may read all.
# May run: owner, administrator.
SELECT_TREE = f"""
    SELECT c.root_chat_id, {TOTALS},
        sum(u.cost_micros) FILTER (WHERE u.chat_id = $1) AS own_cost_micros
    FROM chat.chats c LEFT JOIN chat.usage u ON u.root_chat_id = c.root_chat_id
    WHERE c.id = $1 AND (c.owner_id = $2 OR $3::boolean) GROUP BY c.root_chat_id
"""

# A user's calls in a time range, for that user and for readers of all usage.
OF_USER = """
    u.owner_id = $1 AND u.created_at >= $2 AND u.created_at < $3
    AND (u.owner_id = $4 OR $5::boolean)
"""

# Overall and by model; `grouping` marks the overall row.
# May run: owner, administrator.
SELECT_BY_MODEL = f"""
    SELECT grouping(u.model) = 1 AS is_all, coalesce(u.model, '') AS model,
        coalesce(max(u.model_name), '') AS name, coalesce(max(u.provider), '') AS provider, {TOTALS}
    FROM chat.usage u WHERE {OF_USER} GROUP BY GROUPING SETS ((), (u.model))
    ORDER BY cost_micros DESC, model
"""

# By chat tree, the most expensive ones; a deleted chat has no title, and only owners see titles.
# May run: owner, administrator.
SELECT_BY_CHAT = f"""
    SELECT tree.*, coalesce(c.title, '') AS title FROM (
        SELECT u.root_chat_id, {TOTALS} FROM chat.usage u WHERE {OF_USER}
        GROUP BY u.root_chat_id ORDER BY cost_micros DESC, u.root_chat_id LIMIT $6) tree
    LEFT JOIN chat.chats c ON c.id = tree.root_chat_id AND c.owner_id = $4
    ORDER BY tree.cost_micros DESC, tree.root_chat_id
"""

# By user, the most expensive first, for administrators: $3 and $4 are the position of the page.
# May run: administrator.
SELECT_BY_USER = f"""
    SELECT * FROM (
        SELECT u.owner_id, {TOTALS} FROM chat.usage u
        WHERE u.created_at >= $1 AND u.created_at < $2 GROUP BY u.owner_id) AS spender
    WHERE $3::bigint IS NULL OR cost_micros < $3
        OR cost_micros = $3 AND owner_id > $4::uuid
    ORDER BY cost_micros DESC, owner_id LIMIT $5
"""


@dataclass(frozen=True, slots=True)
class SpenderPlace:
    """The last user of a page: the next page starts after it."""

    cost_micros: int
    owner_id: str


class PostgresUsage:
    """Reads totals from the ledger."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def of_tree(self, chat_id: ChatId, reader: UsageReader) -> TreeUsage:
        """Return the totals of a chat's tree, and what the chat alone cost.

        Raises:
            ChatNotFound: there is no such chat for this reader.
        """
        row = await self._pool.fetchrow(SELECT_TREE, chat_id, reader.id, reader.may_read_all)
        if row is None:
            raise ChatNotFound(chat_id)
        own = row["own_cost_micros"]
        return TreeUsage(
            ChatId(str(row["root_chat_id"])),
            _totals_of(row),
            own_cost_micros=None if own is None else min(int(own), _LARGEST),
        )

    async def of_user(self, user_id: OwnerId, span: UsageSpan, reader: UsageReader) -> UserUsage:
        """Return a user's totals in a time range; without permission they are empty."""
        asked = (user_id, span.start, span.end, reader.id, reader.may_read_all)
        models = await self._pool.fetch(SELECT_BY_MODEL, *asked)
        chats = await self._pool.fetch(SELECT_BY_CHAT, *asked, CHATS_MAX)
        return UserUsage(
            totals=next(_totals_of(row) for row in models if row["is_all"]),
            by_model=tuple(
                UsageRow(row["model"], row["name"], _totals_of(row), row["provider"])
                for row in models
                if not row["is_all"]
            ),
            by_chat=tuple(
                UsageRow(str(row["root_chat_id"]), row["title"], _totals_of(row)) for row in chats
            ),
        )

    async def by_user(
        self, span: UsageSpan, *, after: SpenderPlace | None, length: int
    ) -> tuple[UsageRow, ...]:
        """Return a page of users' totals in a time range, the most expensive first."""
        place = (None, None) if after is None else (after.cost_micros, after.owner_id)
        rows = await self._pool.fetch(SELECT_BY_USER, span.start, span.end, *place, length)
        return tuple(UsageRow(str(row["owner_id"]), "", _totals_of(row)) for row in rows)


def _totals_of(row: asyncpg.Record) -> UsageTotals:
    return UsageTotals(**{name: row[name] for name in UsageTotals.__slots__})

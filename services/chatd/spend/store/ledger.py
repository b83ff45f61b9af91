"""The ledger: one row for each model call, written together with the result of the call.

The id of a row is derived from the purpose and episode of the call, so that entering the same call
repeatedly creates one row.
"""

import uuid

from chatd.models.domain.price import Price
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.spend.domain.ledger import CallPurpose, LedgerEntry
from parley.postgres import Pool

_NO_PRICE = Price()

COLUMNS = """
    id, message_id, purpose, outcome, provider, model, input_tokens, output_tokens,
    reasoning_tokens, cache_read_tokens, cache_write_tokens, input_price, output_price,
    cache_read_price, cache_write_price, cost_micros, model_runtime_ms, model_name, is_estimate,
    is_fallback, chat_id, root_chat_id, owner_id, created_at
"""

# The parameters of an entry, with placeholders for their numbers.
VALUES = """
    {p1}::uuid, {p2}::bigint, {p3}::text, {p4}::text, {p5}::text, {p6}::text, {p7}::bigint,
    {p8}::bigint, {p9}::bigint, {p10}::bigint, {p11}::bigint, {p12}::numeric, {p13}::numeric,
    {p14}::numeric, {p15}::numeric, {p16}::bigint, {p17}::bigint,
    {p18}::text, {p19}::boolean, {p20}::boolean
"""

# The usage and cost of a call; they are replaced only together.
FIGURES = (
    "input_tokens",
    "output_tokens",
    "reasoning_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "cost_micros",
    "model_runtime_ms",
    "is_estimate",
)

_BETTER_FIGURES = ", ".join(
    f"{name} = CASE WHEN usage.is_estimate THEN excluded.{name} ELSE usage.{name} END"
    for name in FIGURES
)

# A clause of the statement that ends the call's episode; it has the time of that statement. If the
# bill was already entered separately, because the result of this commit was unknown, the row gets
# the message id, and an estimate is replaced by the figures stored with the message.
ENTER_BILL = f"""
    billed AS (
        INSERT INTO chat.usage ({COLUMNS})
        SELECT {VALUES}, c.id, c.root_chat_id, c.owner_id, guard.changed_at
        FROM guard JOIN chat.chats c ON c.id = guard.chat_id
        ON CONFLICT (id) DO UPDATE
            SET message_id = excluded.message_id, outcome = excluded.outcome,
                {_BETTER_FIGURES})
"""

_PLACES = {f"p{place}": f"${place}" for place in range(1, 21)}

# Enters the bill separately, for a call whose chat continued without it or was deleted. Reported
# figures replace an estimate; nothing else is changed.
# May run: process.
ENTER = f"""
    INSERT INTO chat.usage ({COLUMNS})
    SELECT {VALUES.format_map(_PLACES)}, $21::uuid,
        coalesce((SELECT root_chat_id FROM chat.chats WHERE id = $21::uuid), $21::uuid),
        $22::uuid, clock_timestamp()
    ON CONFLICT (id) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in FIGURES)}
        WHERE usage.is_estimate AND NOT excluded.is_estimate
"""


def entry_arguments(entry: LedgerEntry) -> tuple[object, ...]:
    """Return an entry as the parameters of a statement."""
    use, price = entry.bill.use, entry.bill.use.price or _NO_PRICE
    return (
        entry_id(entry),
        entry.message_id,
        entry.bill.purpose,
        entry.bill.outcome,
        use.provider,
        use.model_id,
        use.input_tokens,
        use.output_tokens,
        use.reasoning_tokens,
        use.cache_read_tokens,
        use.cache_write_tokens,
        price.input,
        price.output,
        price.cache_read,
        price.cache_write,
        use.cost_micros,
        use.model_runtime_ms,
        use.model_name,
        use.is_estimate,
        use.is_fallback,
    )


def entry_id(entry: LedgerEntry) -> str:
    """Return the id of a call in the ledger; it is deterministic."""
    return episode_id(
        entry.chat_id, entry.bill.purpose, entry.history_version, entry.generation_attempt
    )


def episode_id(
    chat_id: ChatId, purpose: CallPurpose, history_version: int, generation_attempt: int
) -> str:
    """Return the id of a call by its purpose and episode."""
    name = f"{purpose} {history_version}.{generation_attempt}"
    return str(uuid.uuid5(uuid.UUID(chat_id), name))


class PostgresLedger:
    """Enters calls that were not part of a commit of their chat."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def enter(self, entry: LedgerEntry, owner_id: OwnerId) -> None:
        """Enter a call of an owner's chat; an existing row keeps its reported figures."""
        await self._pool.execute(ENTER, *entry_arguments(entry), entry.chat_id, owner_id)

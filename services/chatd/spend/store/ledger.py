"""The ledger: one row for each call of a model, written with what the call was made for.

The id of a row is derived from what the call was for, so that however often the same call is
entered, it is there once.
"""

import uuid

from chatd.models.domain.price import Price
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.spend.domain.ledger import CallPurpose, LedgerEntry
from parley.postgres import Pool, typed_outages

_NO_PRICE = Price()

COLUMNS = """
    id, message_id, purpose, outcome, provider, model, input_tokens, output_tokens,
    reasoning_tokens, cache_read_tokens, cache_write_tokens, input_price, output_price,
    cache_read_price, cache_write_price, cost_micros, model_runtime_ms, model_name, is_estimate,
    chat_id, root_chat_id, owner_id, created_at
"""

# The arguments of an entry, as clauses number them.
VALUES = """
    {p1}::uuid, {p2}::bigint, {p3}::text, {p4}::text, {p5}::text, {p6}::text, {p7}::bigint,
    {p8}::bigint, {p9}::bigint, {p10}::bigint, {p11}::bigint, {p12}::numeric, {p13}::numeric,
    {p14}::numeric, {p15}::numeric, {p16}::bigint, {p17}::bigint,
    {p18}::text, {p19}::boolean
"""

# What a call used and cost; another figure takes its place only as a whole.
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

# As a clause of the statement that ends the call's episode; it takes the time of that. A bill that
# was entered by itself meanwhile, because nobody knew of this commit, learns of its answer, and if
# it was an estimate it takes the figures that are stored with that.
ENTER_BILL = f"""
    billed AS (
        INSERT INTO chat.usage ({COLUMNS})
        SELECT {VALUES}, c.id, c.root_chat_id, c.owner_id, guard.changed_at
        FROM guard JOIN chat.chats c ON c.id = guard.chat_id
        ON CONFLICT (id) DO UPDATE
            SET message_id = excluded.message_id, outcome = excluded.outcome,
                {_BETTER_FIGURES})
"""

_PLACES = {f"p{place}": f"${place}" for place in range(1, 20)}

# By itself, for a call whose chat went on without it or is gone. What its provider reported takes
# the place of an estimate; nothing else is changed.
ENTER = f"""
    INSERT INTO chat.usage ({COLUMNS})
    SELECT {VALUES.format_map(_PLACES)}, $20::uuid,
        coalesce((SELECT root_chat_id FROM chat.chats WHERE id = $20::uuid), $20::uuid),
        $21::uuid, clock_timestamp()
    ON CONFLICT (id) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in FIGURES)}
        WHERE usage.is_estimate AND NOT excluded.is_estimate
"""


def entry_arguments(entry: LedgerEntry) -> tuple[object, ...]:
    """Return an entry as the arguments of a statement."""
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
    )


def entry_id(entry: LedgerEntry) -> str:
    """Return the id that a call has in the ledger, the same however often it is asked for."""
    return episode_id(
        entry.chat_id, entry.bill.purpose, entry.history_version, entry.generation_attempt
    )


def episode_id(
    chat_id: ChatId, purpose: CallPurpose, history_version: int, generation_attempt: int
) -> str:
    """Return the id of a call by what it was made for."""
    name = f"{purpose} {history_version}.{generation_attempt}"
    return str(uuid.uuid5(uuid.UUID(chat_id), name))


class PostgresLedger:
    """Enters calls that no commit of their chat carried."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def enter(self, entry: LedgerEntry, owner_id: OwnerId) -> None:
        """Enter a call of an owner's chat; one that is there already keeps its reported figures."""
        with typed_outages():
            await self._pool.execute(ENTER, *entry_arguments(entry), entry.chat_id, owner_id)

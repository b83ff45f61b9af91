"""What the code calls things in the database, and what they are called there."""

from chatd.primitives.store.constraints import Constraint
from parley.postgres import Pool


async def test_every_constraint_is_known_to_the_code_by_its_name(
    pool: Pool,
) -> None:
    rows = await pool.fetch(
        "SELECT conname FROM pg_constraint"
        " WHERE connamespace = 'chat'::regnamespace AND contype <> 'n'"
        " AND conrelid <> 'chat.alembic_version'::regclass"
    )
    assert {row["conname"] for row in rows} == set(Constraint)

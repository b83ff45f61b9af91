"""The columns of chatd that are encrypted with the master key."""

from sqlalchemy import LargeBinary

from chatd.resources import STORED_KEYS
from chatd.schema import metadata
from parley.postgres import Pool
from parley.process.stored_keys import SealedColumn
from parley.secrets import Keyring, Sealed, SecretBox

OLD = Keyring.generate()
NEW = OLD.with_readable_key().with_newest_first()
SECRET_ID = "01900000-0000-7000-8000-000000000001"
OWNER_ID = "01900000-0000-7000-8000-000000000002"

INSERT = """
    INSERT INTO chat.secrets (id, owner_id, name, description, username, delivery, hosts, header,
        hint, sealed, sealed_key_id, version, request_hash, created_at, changed_at)
    VALUES ($1, $2, 'token', '', '', 'git', '{}', '', '', $3, $4, 1, '', now(), now())
"""


def test_every_encrypted_column_is_rotated() -> None:
    assert set(STORED_KEYS.columns) == {
        SealedColumn(f"chat.{table.name}", column.name, f"{column.name}_key_id")
        for table in metadata.tables.values()
        for column in table.columns
        if isinstance(column.type, LargeBinary) and f"{column.name}_key_id" in table.columns
    }


async def test_a_secret_opens_with_the_new_key_alone_after_a_rotation(pool: Pool) -> None:
    place = {"table": "chat.secrets", "column": "sealed", "row_id": SECRET_ID}
    sealed = SecretBox(OLD).seal(b"value", **place)
    await STORED_KEYS.adopt(pool, OLD)
    await pool.execute(INSERT, SECRET_ID, OWNER_ID, sealed.ciphertext, sealed.key_id)
    assert (await STORED_KEYS.adopt(pool, NEW)).changed == 1
    row = await pool.fetchrow("SELECT sealed, sealed_key_id FROM chat.secrets")
    assert row is not None
    now = Sealed(row["sealed"], row["sealed_key_id"])
    assert SecretBox(NEW.without_old_keys()).open(now, **place) == b"value"

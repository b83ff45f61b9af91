"""Fingerprints of the master keys used with this database, to detect a wrong key file."""

from parley.postgres import Pool
from parley.secrets import Keyring

# Every key that ever sealed something here.
SELECT_FINGERPRINTS = "SELECT key_id, fingerprint FROM chat.key_fingerprints"

# Keys that were added since; several processes may start at once.
INSERT_FINGERPRINTS = """
    INSERT INTO chat.key_fingerprints (key_id, fingerprint)
    SELECT * FROM unnest($1::text[], $2::text[]) ON CONFLICT DO NOTHING
"""


async def check_keyring(pool: Pool, keyring: Keyring) -> None:
    """Compare the keyring with the one this database was written with, and store new keys.

    Raises:
        WrongKey: It is another keyring.
    """
    rows = await pool.fetch(SELECT_FINGERPRINTS)
    new = keyring.check({row["key_id"]: row["fingerprint"] for row in rows})
    await pool.execute(INSERT_FINGERPRINTS, list(new), list(new.values()))

"""The key pair that signs notifications: made once for the installation, and encrypted."""

from collections.abc import Callable

from parley.postgres import Pool
from parley.secrets import Sealed, SecretBox

TABLE = "chat.push_keys"
COLUMN = "sealed"
#: There is one key pair, so its row has a fixed id.
KEY_ID = "00000000-0000-0000-0000-000000000001"

# May run: process, user.
SELECT_KEY = "SELECT sealed, sealed_key_id FROM chat.push_keys WHERE id = $1"

# Of several processes that make one at the same time, one wins.
# May run: process, user.
INSERT_KEY = """
    INSERT INTO chat.push_keys (id, sealed, sealed_key_id, created_at)
    VALUES ($1, $2, $3, clock_timestamp()) ON CONFLICT (id) DO NOTHING
"""


class PostgresPushKeys:
    """Stores the key pair.

    Args:
        pool: The database.
        box: Encrypts the private key.
        generate: Returns a new private key as it is stored.
    """

    def __init__(self, pool: Pool, box: SecretBox, generate: Callable[[], bytes]) -> None:
        self._pool = pool
        self._box = box
        self._generate = generate

    async def private_key(self) -> bytes:
        """Return the private key of the installation, which the first call makes.

        Raises:
            SecretsError: It cannot be decrypted.
        """
        row = await self._pool.fetchrow(SELECT_KEY, KEY_ID)
        if row is None:
            sealed = self._box.seal(self._generate(), table=TABLE, column=COLUMN, row_id=KEY_ID)
            await self._pool.execute(INSERT_KEY, KEY_ID, sealed.ciphertext, sealed.key_id)
            row = await self._pool.fetchrow(SELECT_KEY, KEY_ID)
            assert row is not None  # It is never deleted.
        stored = Sealed(row["sealed"], row["sealed_key_id"])
        return self._box.open(stored, table=TABLE, column=COLUMN, row_id=KEY_ID)

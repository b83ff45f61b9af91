"""Rotation of the master key while a process runs.

The file of the keyring gets a new first key. Every process that has encrypted values notices,
encrypts what it finds for that key, and lets go of what it has in memory. Once nothing in the
database needs another key, the process reports the first key as the only one that it needs;
`parley keys rotate` removes the others when every process says so.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from parley.clock import Clock
from parley.process.stored_keys import StoredKeys
from parley.secrets import Keyring, KeyringFile

if TYPE_CHECKING:
    # A toolrunner has no database: loading its drivers would be a third of its start.
    from parley.postgres import Pool

LOOK_S: Final = 1.0
#: A process that could not read the new file yet may still write with an old key.
REPEAT_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class MasterKeyStatus:
    """The master keys of a process at one moment.

    Attributes:
        key_ids: The ids of its keys; the first one encrypts.
        values: How many stored values each key encrypts, by its id.
        settled_key_id: The key that was the only one needed when the process last looked; empty
            while values need another one.
        damaged: Values that cannot be decrypted, as `table/row`.
    """

    key_ids: tuple[str, ...]
    values: Mapping[str, int]
    settled_key_id: str
    damaged: tuple[str, ...]


class KeyRotation:
    """Encrypts the values of one schema for the first key of a file, whenever that changes.

    Args:
        stored: The values.
        pool: Their database.
        file: The keyring.
        clock: The clock.
        settled: Is called when nothing needs an old key any more, before that is reported; it has
            to drop encrypted values that the process keeps in memory.
    """

    def __init__(
        self,
        stored: StoredKeys,
        pool: "Pool",
        file: KeyringFile,
        clock: Clock,
        settled: Callable[[], None] = lambda: None,
    ) -> None:
        self._stored = stored
        self._pool = pool
        self._file = file
        self._clock = clock
        self._settled = settled
        self._settled_key_id = ""
        self._damaged: tuple[str, ...] = ()
        self._seen: Keyring | None = None

    async def run(self) -> None:
        """Follow the file for as long as the process runs."""
        looked_at_s = self._clock.monotonic()
        while True:
            await self._clock.sleep(LOOK_S)
            keyring, now_s = self._file.current, self._clock.monotonic()
            is_due = len(keyring.keys) > 1 and now_s - looked_at_s >= REPEAT_S
            if keyring != self._seen or is_due:
                looked_at_s = now_s
                await self.adopt(keyring)

    async def adopt(self, keyring: Keyring) -> None:
        """Encrypt all values for the first key of `keyring`.

        Raises:
            WrongKey: A key that the database needs is missing or another one.
        """
        first = keyring.writing_key.id
        adoption = await self._stored.adopt(self._pool, keyring)
        self._damaged = adoption.damaged
        if set(await self._stored.count(self._pool)) <= {first}:
            if self._settled_key_id != first:
                self._settled()
            self._settled_key_id = first
        else:
            self._settled_key_id = ""
        self._seen = keyring

    async def status(self) -> MasterKeyStatus:
        """Return the keys of the process, and what they are needed for."""
        keyring = self._file.current
        return MasterKeyStatus(
            key_ids=tuple(key.id for key in keyring.keys),
            values=await self._stored.count(self._pool),
            settled_key_id=self._settled_key_id,
            damaged=self._damaged,
        )

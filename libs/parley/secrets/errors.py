"""Errors of keys and sealed values.

    SecretsError
    ├── KeyringUnreadable          the key file is missing or malformed
    ├── WrongKey                   the key file is not the one the database was written with
    ├── KeyMissing                 a sealed value names a key that the keyring does not hold
    └── CiphertextDamaged
        ├── CiphertextTruncated    too short or of an unknown form
        └── CiphertextTampered     changed, moved to another row, or sealed with other bytes

No message repeats a key or a value.
"""

from pathlib import Path

from parley.settings import ConfigurationError


class SecretsError(Exception):
    """Base of the errors of this package."""


class KeyringUnreadable(SecretsError, ConfigurationError):
    """A key file that is missing or malformed.

    Attributes:
        path: The file.
        problem: What is wrong with it.
    """

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"key file {path}: {problem}; restore it from its backup")
        self.path = path
        self.problem = problem


class WrongKey(SecretsError, ConfigurationError):
    """The keyring lacks keys that the database was written with, or has different ones.

    Attributes:
        key_ids: The ids of these keys.
    """

    def __init__(self, key_ids: tuple[str, ...]) -> None:
        super().__init__(
            f"the database holds secrets sealed with keys {', '.join(key_ids)}, which the key file"
            " does not hold in the same form; start with the key file that belongs to this"
            " database, or restore it from its backup"
        )
        self.key_ids = key_ids


class KeyMissing(SecretsError):
    """A sealed value names a key that the keyring does not hold.

    Attributes:
        key_id: The key.
    """

    def __init__(self, key_id: str) -> None:
        super().__init__(f"no key {key_id} in the key file; add it back to read this value")
        self.key_id = key_id


class CiphertextDamaged(SecretsError):
    """A sealed value that cannot be decrypted.

    Attributes:
        table: The table of the value.
        column: Its column.
        row_id: Its row.
    """

    what = "is damaged"

    def __init__(self, *, table: str, column: str, row_id: str) -> None:
        super().__init__(
            f"the secret in {table}.{column} of row {row_id} {self.what}; enter it again"
        )
        self.table = table
        self.column = column
        self.row_id = row_id


class CiphertextTruncated(CiphertextDamaged):
    """A sealed value that is too short or begins with an unknown version."""

    what = "is cut short or of an unknown form"


class CiphertextTampered(CiphertextDamaged):
    """A sealed value that was changed or belongs to another row."""

    what = "was changed or belongs to another row"

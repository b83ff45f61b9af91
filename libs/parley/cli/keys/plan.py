"""The plan of a rotation: what is to be replaced, and how far it has come.

It is written before the first key changes and removed after the last, so that an interrupted
rotation is continued with the keys that it has made, and is not begun again. A stage is recorded
when all of its files are written; its steps find out themselves what is already done.
"""

from datetime import datetime
from enum import StrEnum
from pathlib import Path

import msgspec

from parley.cli.errors import CliError
from parley.files import write_atomically


class Stage(StrEnum):
    """What was done last."""

    BEGUN = "begun"
    #: The new keys can be read by everybody; the old ones are in use.
    KNOWN = "known"
    #: The new keys are in use; the old ones can be read.
    USED = "used"


class Rotation(msgspec.Struct, frozen=True, kw_only=True):
    """A rotation that is not finished.

    Attributes:
        stage: What was done last.
        changed_at: When that was.
        master_key_ids: The master keys to be replaced; empty if they stay.
        signing_key_ids: The signing keys to be replaced, by service; empty if they stay.
        authority: The fingerprint of the certificate authority to be replaced; empty if it stays.
    """

    stage: Stage
    changed_at: datetime
    master_key_ids: tuple[str, ...] = ()
    signing_key_ids: dict[str, str] = {}
    authority: str = ""

    def at(self, stage: Stage, now: datetime) -> "Rotation":
        """Return the rotation after a stage."""
        return msgspec.structs.replace(self, stage=stage, changed_at=now)

    def save(self, path: Path) -> None:
        """Write it, durably."""
        write_atomically(path, msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n")

    @classmethod
    def load(cls, path: Path) -> "Rotation | None":
        """Read the rotation that is not finished, if there is one.

        Raises:
            CliError: The file is damaged.
        """
        try:
            return msgspec.json.decode(path.read_bytes(), type=cls)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise CliError(
                f"{path} cannot be read ({error}): remove it, then see `parley keys status`"
            ) from error

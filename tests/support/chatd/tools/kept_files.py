"""Files of chats that a test can look at."""

from dataclasses import dataclass, field

from chatd.models.domain.language_model import FileData
from chatd.primitives.domain.ids import OwnerClaim, OwnerId


@dataclass(slots=True)
class KeptFiles:
    """Keeps files in memory, by their ids."""

    files: dict[str, FileData] = field(default_factory=dict)

    async def keep(
        self, claim: OwnerClaim, owner_id: OwnerId, file_id: str, file: FileData
    ) -> None:
        """Keep a file."""
        self.files[file_id] = file

"""Attached files in a dictionary."""

from chatd.models.domain.language_model import FileData
from chatd.primitives.domain.ids import OwnerClaim, OwnerId


class InMemoryAttachmentStore:
    """Stores files in a dictionary; the fake of `AttachmentStore`."""

    def __init__(self) -> None:
        self.files: dict[str, FileData] = {}

    async def keep(
        self, claim: OwnerClaim, owner_id: OwnerId, file_id: str, file: FileData
    ) -> None:
        """Store the file."""
        self.files.setdefault(file_id, file)

"""Limits of uploads: how many are in memory at a time, in all and of one user."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from gateway.http.problems.errors import HttpProblem

#: Uploads whose bytes are in memory at a time.
UPLOADS_MAX: Final = 16
#: Of one user, so that no user can use all of them.
UPLOADS_PER_USER_MAX: Final = 4


class UploadSlots:
    """Places for uploads, shared by all routes that take files."""

    def __init__(self) -> None:
        self._uploads: Counter[str] = Counter()

    @contextmanager
    def taken(self, user_id: str) -> Iterator[None]:
        """Acquire an upload slot.

        Raises:
            HttpProblem: This user has the maximum number (429), or all are in use (503).
        """
        if self._uploads[user_id] >= UPLOADS_PER_USER_MAX:
            text = f"You are uploading {UPLOADS_PER_USER_MAX} files; wait until one is through."
            raise HttpProblem.of("TOO_MANY_UPLOADS", text)
        if self._uploads.total() >= UPLOADS_MAX:
            raise HttpProblem.of("SERVER_BUSY", "Many files are being uploaded; try again shortly.")
        self._uploads[user_id] += 1
        try:
            yield
        finally:
            self._uploads[user_id] -= 1
            if not self._uploads[user_id]:
                del self._uploads[user_id]

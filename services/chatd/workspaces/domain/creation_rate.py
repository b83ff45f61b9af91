"""How fast one user may create workspaces.

Creating and deleting one costs the service and the node far more than a message, so that a user who
does nothing else would slow down the turns of others, however few exist at a time.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

WINDOW: Final = timedelta(minutes=1)


def wait_s(created_at: Sequence[datetime], created_max: int, now: datetime) -> float:
    """Return in how many seconds one more may be created; 0 for now.

    Args:
        created_at: When the last ones were created, the newest first.
        created_max: How many may be created within the window; 0 for no limit.
        now: The time.
    """
    if created_max <= 0 or len(created_at) < created_max:
        return 0.0
    return max(0.0, (created_at[created_max - 1] + WINDOW - now).total_seconds())

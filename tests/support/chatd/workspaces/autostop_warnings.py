"""When users are warned of the autostop, as the statement of the store decides it."""

from datetime import datetime

from chatd.workspaces.domain.lifetime import WARNING


def is_warning_due(deadline: datetime | None, warned_for: datetime | None, now: datetime) -> bool:
    """Return whether users must be warned now of the autostop; once per deadline."""
    return deadline is not None and warned_for != deadline and deadline - now <= WARNING

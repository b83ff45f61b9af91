"""The audit log of security-relevant changes: user, action and facts, never a secret's value."""

import logging

logger = logging.getLogger("parley.audit")


def audit(action: str, *, user_id: str, **facts: object) -> None:
    """Record a security-relevant action of a user.

    Args:
        action: The action as `thing.done`, such as `provider.origin_changed`.
        user_id: The user who did it.
        facts: Further facts for the reader; never the value of a key or secret.
    """
    # Logged as a warning, so that installations with a high log level keep it.
    logger.warning("audit", extra={"event": "audit", "action": action, "user_id": user_id, **facts})

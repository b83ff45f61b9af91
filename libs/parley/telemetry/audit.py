"""The record of changes that matter for security: who changed what, never a secret's value."""

import logging

logger = logging.getLogger("parley.audit")


def audit(action: str, *, user_id: str, **facts: object) -> None:
    """Record that a user did something that matters for security.

    Args:
        action: What was done, as `thing.done`, such as `provider.origin_changed`.
        user_id: Who did it.
        facts: What a reader has to know of it; never the value of a key or secret.
    """
    # A warning, so that installations that log little keep it.
    logger.warning("audit", extra={"event": "audit", "action": action, "user_id": user_id, **facts})
